// The two parts of a node's heap. What only its own CPU writes lies in the first: indexes, epoch words. Others may READ
// that, and no more. Records with their locks lie in the second, where others may do everything.
//
//   0          heap_offset                writable_offset                      bytes
//   | fabric's | READ only                | READ, WRITE, atomics               |
#pragma once

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/cache_line.h"
#include "base/status.h"

namespace gannet::rdma {

// How much of the heap is the first part. TPC-C takes a seventh for its indexes at first and a fifth as it grows; a
// B+tree over the smallest records there are, a third.
inline constexpr uint32_t kDefaultReadOnlyPercent = 25;
inline constexpr uint32_t kMostReadOnlyPercent = 90;

// Rights go by pages.
inline constexpr uint64_t kRightsPageBytes = 4096;

constexpr uint64_t WritableOffset(uint64_t heap_offset, uint64_t bytes, uint32_t read_only_percent) {
  const uint64_t wish = (bytes - heap_offset) / 100 * read_only_percent;
  return RoundUp(heap_offset, kRightsPageBytes) + wish / kRightsPageBytes * kRightsPageBytes;
}

inline Status CheckReadOnlyPercent(uint32_t percent) {
  if (percent >= 1 && percent <= kMostReadOnlyPercent) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("1 to ", kMostReadOnlyPercent, " percent of a node's memory can be read-only, not ", percent));
}

}  // namespace gannet::rdma
