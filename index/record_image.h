// How a client reads a record of another node: what a READ brought, and what is to be READ next.
//
//   1. READ as many bytes as the record probably has, at least HeaderReadBytes (record_header.h) of the key.
//   2. LookAtRecord. kLocked and kTorn: READ again. kLonger: READ RecordLook::bytes. Otherwise it is settled.
//
// This header judges images and does no I/O. How often to READ again, how to wait before that, and what a settled
// answer means is the caller's: a transaction gives up after a few READs, since the worker that holds the lock may be
// dead, or may wait for this one; the bench of indexes, which has neither, waits for the writer.
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
  kLonger,  // the same, but the payload ends behind the image
  kLocked,  // a writer has it
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

// Judges an image of `bytes` bytes (whole lines), which a READ from a record's address brought. Stale addresses are
// fine: what lies there now is judged (rdma/versioned.h).
inline RecordLook LookAtRecord(const std::byte* image, size_t bytes, uint16_t table, const Key& key) {
  RecordLook look{.is = RecordImage::kWhole, .state = LoadWord(image), .meta = LoadMeta(image), .bytes = 0};
  const auto settle = [&look](RecordImage is) {
    look.is = is;
    return look;
  };
  if (IsLocked(look.state)) return settle(RecordImage::kLocked);
  // The first word alone tells. Of a block that was given back, the lines may never agree again.
  if (IsAbsent(look.state)) return settle(RecordImage::kAbsent);
  look.bytes = RecordBytes(look.meta.key_bytes, look.meta.payload_bytes);
  const bool is_whole = look.bytes <= bytes;
  if (!rdma::IsConsistentImage(image, (is_whole ? look.bytes : bytes) / kLineBytes)) return settle(RecordImage::kTorn);
  if (look.meta.table != table || !RecordHoldsKey(image, key)) return settle(RecordImage::kOther);
  return settle(is_whole ? RecordImage::kWhole : RecordImage::kLonger);
}

}  // namespace gannet::index
