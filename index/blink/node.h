// The nodes of a B-link tree: shared leaves (index/shared_leaf/leaf/leaf.h) at all levels. Keys: IntegerKeys or
// ByteKeys.
#pragma once

#include <bit>
#include <cstdint>

#include "index/shared_leaf/change/leaf_editor.h"
#include "index/shared_leaf/change/leaf_keys.h"
#include "index/shared_leaf/leaf/byte_keys.h"
#include "index/shared_leaf/leaf/integer_keys.h"
#include "index/shared_leaf/leaf/leaf.h"

namespace gannet::index::blink {

using shared_leaf::ByteKeys;
using shared_leaf::IntegerEntry;
using shared_leaf::IntegerKeys;
using shared_leaf::kRoomy;
using shared_leaf::kSparse;
using shared_leaf::LeafImage;
using shared_leaf::SlotOf;

// Levels are less than this: with at least two entries in an inner node, and 2^64 keys.
inline constexpr uint8_t kMaxLevels = 64;
// The root keeps this many slots free: for the two entries that lead to its former content.
template <class Keys>
inline constexpr int kRootSlots = Keys::kSlots - 2;

// The slot of the greatest separator that leads to the point or to its left; with `below`, of the greatest below that
// slot's. -1: there is none. Byte keys: of those that are known.
template <class Keys>
int ChildSlot(const typename Keys::Image& node, const typename Keys::EntryKeys& keys, const typename Keys::Point& point,
              int below = -1) {
  int best = -1;
  for (uint64_t used = node.template used<typename Keys::Entry>(); used != 0; used &= used - 1) {
    const int slot = std::countr_zero(used);
    if (!Keys::Knows(keys, slot)) continue;
    const auto& at = Keys::KeyAt(node, keys, slot);
    if (!Keys::IsAtMost(at, point) || (below >= 0 && at >= Keys::KeyAt(node, keys, below))) continue;
    if (best < 0 || at > Keys::KeyAt(node, keys, best)) best = slot;
  }
  return best;
}

}  // namespace gannet::index::blink
