// What a scan takes from one leaf.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "index/index.h"
#include "index/remote/leaf_change.h"

namespace gannet::index::remote {

// Appends the leaf's witness and its entries, in the direction of the scan, from *next to the end of [from, to], until
// the result has `end` entries. `place` covers *next. True: the scan is at its end. Otherwise it continues at *next.
inline bool TakeLeaf(const LeafPlace& place, uint64_t from, uint64_t to, bool reverse, size_t end, ScanResult* result,
                     uint64_t* next) {
  result->witnesses.push_back(place.witness());
  const uint64_t low = reverse ? from : *next;
  const uint64_t high = reverse ? *next : to;
  std::array<IntegerEntry, IntegerEntry::kSlots> entries;
  size_t n = 0;
  for (uint64_t used = place.image.used<IntegerEntry>(); used != 0; used &= used - 1) {
    const auto entry = place.image.entry<IntegerEntry>(std::countr_zero(used));
    if (low <= entry.key && entry.key <= high) entries[n++] = entry;
  }
  std::sort(
      entries.begin(), entries.begin() + static_cast<ptrdiff_t>(n),
      [reverse](const IntegerEntry& a, const IntegerEntry& b) { return reverse ? b.key < a.key : a.key < b.key; });
  for (size_t i = 0; i < n; ++i) {
    if (result->entries.size() >= end) break;
    result->entries.push_back({OwnedKey(entries[i].key), rdma::GlobalAddress::FromBits(entries[i].target)});
    *next = reverse ? entries[i].key - 1 : entries[i].key + 1;
    if (entries[i].key == (reverse ? from : to)) return true;
  }
  if (result->entries.size() >= end) return false;
  if (reverse ? place.image.head.low <= from : place.image.head.high >= to) return true;
  *next = reverse ? place.image.head.low - 1 : place.image.head.high + 1;
  return false;
}

}  // namespace gannet::index::remote
