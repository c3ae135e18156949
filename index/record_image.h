// How a client reads a record of another node: it judges the image that a READ brought, and finds out what to READ
// next.
//
//   1. READ as many bytes as the record probably has, at least HeaderReadBytes (record_header.h) of the key.
//   2. LookAtRecord. kLocked and kTorn: READ again. kLonger: READ RecordLook::bytes. Any other result is settled.
//
// This header does no I/O. The caller decides how often to READ again, how to wait before that, and what a settled
// result means. A transaction gives up after a few READs, because the worker that holds the lock may be dead, or may
// wait for this one. The bench of indexes has neither case, and waits for the writer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cache_line.h"
#include "index/key.h"
#include "index/lock_word.h"
#include "index/record_header.h"
#include "rdma/versioned.h"

namespace gannet::index {

enum class RecordImage : uint8_t {
  kWhole,   // the key's record, as one write left it
  kLonger,  // the same, but the payload ends after the image
  kLocked,  // a writer has locked it
  kTorn,    // the image has lines of several writes
  kAbsent,  // removed, not yet committed, or no record at all
  kOther,   // the record of another key or table
};

struct RecordLook {
  RecordImage is;
  uint64_t state;   // the state word, as the image has it
  RecordMeta meta;  // of kWhole and kLonger
  size_t bytes;     // of the whole record; of kWhole and kLonger

  // A later READ of the same place may bring the record.
  bool is_unsettled() const { return is == RecordImage::kLocked || is == RecordImage::kTorn; }
};

// Judges an image of `bytes` bytes (whole lines) from a READ of a record's address. The address may be
// stale: the function then judges the memory that is there now (rdma/versioned.h).
inline RecordLook LookAtRecord(const std::byte* image, size_t bytes, uint16_t table, const Key& key) {
  RecordLook look{.is = RecordImage::kWhole, .state = LoadWord(image), .meta = LoadMeta(image), .bytes = 0};
  const auto settle = [&look](RecordImage is) {
    look.is = is;
    return look;
  };
  if (IsLocked(look.state)) return settle(RecordImage::kLocked);
  // The first word alone decides. The lines of a freed block may never agree again.
  if (IsAbsent(look.state)) return settle(RecordImage::kAbsent);
  look.bytes = RecordBytes(look.meta.key_bytes, look.meta.payload_bytes);
  const bool is_whole = look.bytes <= bytes;
  if (!rdma::IsConsistentImage(image, (is_whole ? look.bytes : bytes) / kLineBytes)) return settle(RecordImage::kTorn);
  if (look.meta.table != table || !RecordHoldsKey(image, key)) return settle(RecordImage::kOther);
  return settle(is_whole ? RecordImage::kWhole : RecordImage::kLonger);
}

}  // namespace gannet::index
