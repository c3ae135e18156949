// The part of a record that an index may know: the place of its key.
//
// A record is a versioned object (rdma/versioned.h) whose data begins with
//
//   data 0 .. 7    meta word: | incarnation 16 | table 16 | key bytes, high 4 | payload bytes 20 | key bytes, low 8 |
//   data 8 ..      the key: an integer key is its native 8 bytes; a byte key is padded with zeros to whole words
//   then           the payload
//
// The meta word and the key are written before the record becomes reachable, and stay until the memory is reused after
// the grace period. Only the payload size may change, under the record's lock. The state word (lock_word.h) belongs to
// txn.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cache_line.h"
#include "index/key.h"
#include "rdma/slab.h"
#include "rdma/versioned.h"

namespace gannet::index {

struct RecordMeta {
  uint16_t key_bytes = 0;      // < 2^12
  uint32_t payload_bytes = 0;  // < 2^20
  uint16_t table = 0;
  uint16_t incarnation = 0;  // +1 whenever the block is reused for a new record

  constexpr uint64_t Pack() const {
    return uint64_t{key_bytes & 0xffu} | uint64_t{payload_bytes & 0xfffffu} << 8 | uint64_t{key_bytes & 0xf00u} << 20 |
           uint64_t{table} << 32 | uint64_t{incarnation} << 48;
  }
  static constexpr RecordMeta Unpack(uint64_t word) {
    return {.key_bytes = static_cast<uint16_t>((word & 0xff) | (word >> 20 & 0xf00)),
            .payload_bytes = static_cast<uint32_t>(word >> 8) & 0xfffff,
            .table = static_cast<uint16_t>(word >> 32),
            .incarnation = static_cast<uint16_t>(word >> 48)};
  }
};
static_assert(kMaxKeyBytes < size_t{1} << 12);

inline constexpr size_t kMetaDataOffset = 0;
inline constexpr size_t kKeyDataOffset = 8;

// Bytes that the key takes in the record.
constexpr size_t StoredKeyBytes(size_t key_bytes) {
  return RoundUp(key_bytes, kWordBytes);
}
// Data offset of the payload.
constexpr size_t PayloadDataOffset(size_t key_bytes) {
  return kKeyDataOffset + StoredKeyBytes(key_bytes);
}
// Bytes of the whole object.
constexpr size_t RecordBytes(size_t key_bytes, size_t payload_bytes) {
  return rdma::ObjectBytesFor(PayloadDataOffset(key_bytes) + payload_bytes);
}

// The functions below take a record in the owner's memory, or the buffer of a READ that covers as many bytes as a key
// of the length that is looked for needs (HeaderReadBytes). Clients can write into a record, so its meta word may have
// any value: RecordHoldsKey reads no more than key.size() bytes of the key, LoadKey no more than kMaxKeyBytes. No
// record lies so close to the end of memory that these would lie outside (rdma::kReadBeyondBytes).
static_assert(rdma::ObjectBytesFor(kKeyDataOffset + kMaxKeyBytes) <= kLineBytes + rdma::kReadBeyondBytes);
inline RecordMeta LoadMeta(const std::byte* record) {
  return RecordMeta::Unpack(LoadWord(record + rdma::PlaceOf(kMetaDataOffset)));
}
bool RecordHoldsKey(const std::byte* record, const Key& key);
// The key of a record, for structural checks and for byte keys in messages.
OwnedKey LoadKey(const std::byte* record, KeyKind kind);
// Writes the meta word and the key into a record that no one else can reach yet, or into an image.
void StoreHeader(std::byte* record, const RecordMeta& meta, const Key& key);

// Number of bytes from the record's start that a READ needs to get the whole key.
constexpr size_t HeaderReadBytes(size_t key_bytes) {
  return rdma::ObjectBytesFor(PayloadDataOffset(key_bytes));
}

}  // namespace gannet::index
