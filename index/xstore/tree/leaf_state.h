// The state word of a leaf, which is its witness word (index/witness_word.h).
//
//    63     62     61        60                40  39                    0
//  +------+------+---------+---------------------+------------------------+
//  | lock | 0    | shadows | structure (21)      | version (40)           |
//  +------+------+---------+---------------------+------------------------+
//
// version    +1 whenever the set of keys in [low, high] may have changed. Then the other bits are 0.
// structure  +1 whenever the leaf's fences, or its right link, change but not its keys: an empty neighbour, or the
//            leaf itself, was unlinked (unlink.cc).
// shadows    the leaf may have shadows (shadows.h).
#pragma once

#include <cstdint>

#include "index/witness_word.h"

namespace gannet::index::xstore {

inline constexpr uint64_t kHasShadows = uint64_t{1} << 61;
inline constexpr uint64_t kOneStructure = uint64_t{1} << 40;
inline constexpr uint64_t kStructureCount = kStructureBits & ~kHasShadows;
static_assert((kStructureCount & ~(kHasShadows - kOneStructure)) == 0);

// The unlocked state after `state` when the set of keys has changed.
constexpr uint64_t NextSet(uint64_t state) {
  return NextState(state, false);
}

// The unlocked state after the unlocked `state` when only fences or links have changed. After 2^21 times without a
// change of the set the version has to grow, which costs the transactions that hold it a conflict.
constexpr uint64_t NextStructure(uint64_t state) {
  const bool full = (state & kStructureCount) == kStructureCount;
  return full ? NextSet(state) | (state & kHasShadows) : state + kOneStructure;
}

}  // namespace gannet::index::xstore
