// The two parts of a node's heap. The first part holds what only the node's own CPU writes: indexes and epoch words.
// Other nodes may only READ it. The second part holds records with their locks; other nodes may READ, WRITE and use
// atomics there.
//
//   0          heap_offset                writable_offset                      bytes
//   | fabric's | READ only                | READ, WRITE, atomics               |
#pragma once

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/cache_line.h"
#include "base/status.h"

namespace gannet::rdma {

// Largest size of the first part, in percent of the heap. (fabric.h has the usual one.)
inline constexpr uint32_t kMostReadOnlyPercent = 90;

// Rights are granted by page.
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
