// Shared by the parts of a commit: what a write needs, and how it is put into a record.
#pragma once

#include <cstdint>
#include <span>

#include "base/check.h"
#include "index/record_header.h"
#include "rdma/versioned.h"
#include "txn/record/record.h"
#include "txn/session/write_set.h"

namespace gannet::txn {

inline bool ChangesRecord(const WriteEntry& entry) {
  return entry.kind == WriteKind::kUpdate || entry.kind == WriteKind::kRemove;
}

inline bool NeedsMove(const WriteEntry& entry) {
  return entry.kind == WriteKind::kUpdate && entry.payload_bytes != entry.image_payload_bytes &&
         BlockBytesOf(entry.key, entry.payload_bytes) != BlockBytesOf(entry.key, entry.image_payload_bytes);
}

// The owner, another node, prepares the write: an insert, or a record that has to move. If not `indexed`.
inline bool IsPrepared(const WriteEntry& entry) {
  return !entry.is_direct() && (entry.kind == WriteKind::kInsert || NeedsMove(entry));
}

inline void StorePayloadBytes(std::byte* object, uint32_t payload_bytes) {
  index::RecordMeta meta = index::LoadMeta(object);
  meta.payload_bytes = payload_bytes;
  const uint64_t word = meta.Pack();
  rdma::CopyIn(object, index::kMetaDataOffset, std::as_bytes(std::span(&word, 1)));
}

inline void ApplyPatches(std::byte* object, const WriteEntry& entry) {
  if (entry.payload_bytes != entry.image_payload_bytes) StorePayloadBytes(object, entry.payload_bytes);
  for (const Patch* patch = entry.patches; patch != nullptr; patch = patch->next) {
    GANNET_CHECK(patch->offset + patch->size <= entry.payload_bytes, "a patch of %s ends at byte %d of %d",
                 entry.record.ToString(), patch->offset + patch->size, entry.payload_bytes);
    rdma::CopyIn(object, index::PayloadDataOffset(entry.key.size()) + patch->offset, {patch->data, patch->size});
  }
}

}  // namespace gannet::txn
