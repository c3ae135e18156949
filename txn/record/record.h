// Making and unmaking records in this node's memory (index/record_header.h has the layout, lock_word.h the first word,
// a record's state word).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "index/lock_word.h"
#include "index/record_header.h"
#include "rdma/slab.h"
#include "txn/store/table.h"

namespace gannet::txn {

using index::Key;

// Functions and constants of state words.
using index::IsAbsent;
using index::IsLocked;
using index::kAbsentBit;
using index::Locked;
using index::LockOwnerChannel;
using index::LockOwnerNode;
using index::NextState;
using index::OwnerBits;
using index::VersionOf;
using rdma::kVersionMask;

struct NewRecord {
  std::byte* block = nullptr;
  uint64_t state = 0;  // absent, without lock and owner; the installed record's version follows it
};

// Lines of a record with this payload.
inline size_t RecordLines(const Key& key, size_t payload_bytes) {
  return rdma::LinesFor(index::PayloadDataOffset(key.size()) + payload_bytes);
}

// Bytes of memory that it takes. A record may grow and shrink in place while its BlockBytesOf stays the same.
inline int64_t BlockBytesOf(const Key& key, size_t payload_bytes) {
  return static_cast<int64_t>(rdma::SlabAllocator::BlockBytes(index::RecordBytes(key.size(), payload_bytes)));
}

// Makes a complete record that is locked by `owner_bits` and absent. Its lines already carry the version of the
// install, so that storing NextState(state, false) in the state word, by a CPU or by one 8-byte WRITE, makes it whole
// and visible. That version is above `above_version` (for a record that moves: the version at its old place).
StatusOr<NewRecord> MakeLockedRecord(rdma::SlabCache& slab, TableId table, const Key& key,
                                     std::span<const std::byte> payload, uint64_t owner_bits,
                                     uint64_t above_version = 0);
// Makes such a record in a block of the right size, to which no index and no other node leads.
NewRecord MakeLockedRecordAt(std::byte* block, TableId table, const Key& key, std::span<const std::byte> payload,
                             uint64_t owner_bits, uint64_t above_version);

// Gives a record that no index and no other node leads to another payload, which needs a block of the same size.
void RewriteRecord(std::byte* record, const Key& key, std::span<const std::byte> payload);

// Makes a record as MakeLockedRecord does, but in an image, for a block whose first word is `state`, which is absent.
// image.size(): the lines of the record.
void MakeLockedImage(std::span<std::byte> image, TableId table, const Key& key, std::span<const std::byte> payload,
                     uint16_t incarnation, uint64_t state, uint64_t owner_bits);

// Makes the version of a record that MakeLockedRecord made, and that is still locked and absent, at least `version`.
// Returns its new state.
uint64_t RaiseLockedVersion(std::byte* record, size_t lines, uint64_t state, uint64_t version, uint64_t owner_bits);

// Marks a record that the caller has locked as absent, permanently, and unlocks it. `state`: before the lock.
void MarkAbsent(std::byte* record, size_t lines, uint64_t state);

}  // namespace gannet::txn
