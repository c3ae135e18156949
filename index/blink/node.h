// The nodes of a B-link tree: shared leaves with integer keys (index/remote/leaf.h) at all levels.
#pragma once

#include <cstdint>

#include "index/remote/leaf.h"

namespace gannet::index::blink {

using remote::IntegerEntry;
using remote::LeafImage;

inline constexpr int kSlots = IntegerEntry::kSlots;
// Levels are less than this: with at least two entries in an inner node, and 2^64 keys.
inline constexpr uint8_t kMaxLevels = 64;
// The root keeps this many slots free: for the two entries that lead to its former content.
inline constexpr int kRootSlots = kSlots - 2;
// A node with at most kSparse entries gives them to its left sibling, if that has at most kRoomy then.
inline constexpr int kSparse = 4;
inline constexpr int kRoomy = 12;

// The slot of the greatest entry whose key is at most `key`; with `below`, of the greatest below that slot's key. -1:
// there is none.
inline int ChildSlot(const LeafImage& node, uint64_t key, int below = -1) {
  const uint64_t bound = below < 0 ? 0 : node.entry<IntegerEntry>(below).key;
  int best = -1;
  uint64_t best_key = 0;
  for (uint64_t used = node.used<IntegerEntry>(); used != 0; used &= used - 1) {
    const int slot = std::countr_zero(used);
    const uint64_t at = node.entry<IntegerEntry>(slot).key;
    if (at > key || (below >= 0 && at >= bound)) continue;
    if (best < 0 || at > best_key) {
      best = slot;
      best_key = at;
    }
  }
  return best;
}

}  // namespace gannet::index::blink
