#include "txn/record/record.h"

#include <algorithm>

#include "base/check.h"
#include "base/mutant.h"

namespace gannet::txn {

StatusOr<NewRecord> MakeLockedRecord(rdma::SlabCache& slab, TableId table, const Key& key,
                                     std::span<const std::byte> payload, uint64_t owner_bits, uint64_t above_version) {
  StatusOr<std::byte*> block = slab.Allocate(index::RecordBytes(key.size(), payload.size()));
  if (!block.ok()) return block.status();
  return MakeLockedRecordAt(*block, table, key, payload, owner_bits, above_version);
}

NewRecord MakeLockedRecordAt(std::byte* block, TableId table, const Key& key, std::span<const std::byte> payload,
                             uint64_t owner_bits, uint64_t above_version) {
  GANNET_CHECK(reinterpret_cast<uintptr_t>(block) % kLineBytes == 0 && above_version <= kVersionMask,
               "a record of table %d at %p, above version %x", table, block, above_version);
  // No index leads to the block. A thread that still has its old address finds it locked from here on.
  const uint64_t before = GANNET_MUTANT(kReuseWithoutGrace) ? 0 : VersionOf(LoadWord(block));
  const uint64_t state = std::max(before, above_version) | kAbsentBit;
  StoreWord(block, Locked(state, owner_bits));
  const size_t lines = RecordLines(key, payload.size());
  rdma::BeginWrite(block, lines);
  const index::RecordMeta old = index::LoadMeta(block);
  index::StoreHeader(block,
                     {.key_bytes = static_cast<uint16_t>(key.size()),
                      .payload_bytes = static_cast<uint32_t>(payload.size()),
                      .table = table,
                      .incarnation = static_cast<uint16_t>(old.incarnation + 1)},
                     key);
  rdma::CopyIn(block, index::PayloadDataOffset(key.size()), payload);
  rdma::StoreVersions(block, lines, NextState(state, false));
  return {block, state};
}

void RewriteRecord(std::byte* record, const Key& key, std::span<const std::byte> payload) {
  const uint64_t state = LoadWord(record);
  StoreWord(record, Locked(state, OwnerBits(0, 0)));
  const size_t lines = RecordLines(key, payload.size());
  rdma::BeginWrite(record, lines);
  index::RecordMeta meta = index::LoadMeta(record);
  if (meta.payload_bytes != payload.size()) {
    meta.payload_bytes = static_cast<uint32_t>(payload.size());
    index::StoreHeader(record, meta, key);
  }
  rdma::CopyIn(record, index::PayloadDataOffset(key.size()), payload);
  rdma::EndWrite(record, lines, NextState(state, false));
}

void MakeLockedImage(std::span<std::byte> image, TableId table, const Key& key, std::span<const std::byte> payload,
                     uint16_t incarnation, uint64_t state, uint64_t owner_bits) {
  index::StoreHeader(image.data(),
                     {.key_bytes = static_cast<uint16_t>(key.size()),
                      .payload_bytes = static_cast<uint32_t>(payload.size()),
                      .table = table,
                      .incarnation = incarnation},
                     key);
  rdma::CopyIn(image.data(), index::PayloadDataOffset(key.size()), payload);
  rdma::StampImage(image.data(), image.size() / kLineBytes, Locked(state, owner_bits), NextState(state, false));
}

uint64_t RaiseLockedVersion(std::byte* record, size_t lines, uint64_t state, uint64_t version, uint64_t owner_bits) {
  if (VersionOf(state) >= version) return state;
  GANNET_CHECK(IsAbsent(state) && !IsLocked(state) && version <= kVersionMask,
               "a record in state %x, which others may see, is raised to version %x", state, version);
  const uint64_t raised = version | kAbsentBit;
  // The lines come first: a client that READs the new word then finds lines of the version that follows it.
  rdma::StoreVersions(record, lines, NextState(raised, false));
  StoreWord(record, Locked(raised, owner_bits));
  return raised;
}

void MarkAbsent(std::byte* record, size_t lines, uint64_t state) {
  rdma::BeginWrite(record, lines);
  rdma::EndWrite(record, lines, NextState(state, true));
}

}  // namespace gannet::txn
