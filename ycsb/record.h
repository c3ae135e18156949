// Records of the bench: they have the format of transactions (txn/record/record.h), with 8-byte keys and values of one
// size, but are used without transactions. A writer locks the state word, writes, and stores the next version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "absl/strings/str_cat.h"
#include "base/runtime.h"
#include "base/status.h"
#include "index/index.h"
#include "index/record_image.h"
#include "txn/record/record.h"

namespace gannet::ycsb {

inline constexpr txn::TableId kTable = 1;
inline constexpr index::IndexId kIndex = 1;

inline Status NotThere(uint64_t key) {
  return absl::NotFoundError(absl::StrCat("there is no key ", key));
}

constexpr size_t RecordBytes(size_t value_bytes) {
  return index::RecordBytes(index::kIntegerKeyBytes, value_bytes);
}
inline constexpr size_t kValueOffset = index::PayloadDataOffset(index::kIntegerKeyBytes);

inline uint64_t RecordLines(size_t value_bytes) {
  return RecordBytes(value_bytes) / kLineBytes;
}

// A value of 8 bytes in the place of a record's address (ClusterOptions::values_in_entries).
inline rdma::GlobalAddress EntryOfValue(std::span<const std::byte> value) {
  uint64_t bits = 0;
  std::memcpy(&bits, value.data(), sizeof bits);
  return rdma::GlobalAddress::FromBits(bits);
}
inline void CopyValue(rdma::GlobalAddress entry, std::span<std::byte> value) {
  const uint64_t bits = entry.bits();
  std::memcpy(value.data(), &bits, sizeof bits);
}

// Judges the image of a whole record from a READ. `key`: the wanted key.
inline index::RecordLook LookAt(const std::byte* image, size_t value_bytes, uint64_t key) {
  Charge(Cost::kRecordLine, RecordLines(value_bytes));
  return index::LookAtRecord(image, RecordBytes(value_bytes), kTable, key);
}

}  // namespace gannet::ycsb
