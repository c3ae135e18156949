// LeafHint: which leaf a thread used last in each tree. The order lines of one order, or the orders of one district,
// fall into the same leaf again and again; a hint saves them the descent.
//
// It holds copies of the fences, so that a hint that does not fit costs no cache miss; one that seems to fit is only a
// guess, which the leaf itself confirms. Leaves stay leaves (block_pool.h), so following a stale hint is harmless, and
// trees have numbers that are never used twice.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "index/xstore/leaf.h"

namespace gannet::index::xstore {

template <int W>
class LeafHint {
 public:
  // The leaf that may cover `key`; null if nothing is known.
  static Leaf<W> Get(uint64_t tree, const KeyWords<W>& key) {
    const Slot& slot = slots_[tree % kSlots];
    if (slot.tree != tree || key < slot.low || slot.high < key) return Leaf<W>();
    return Leaf<W>(slot.leaf);
  }
  static void Set(uint64_t tree, Leaf<W> leaf, const KeyWords<W>& low, const KeyWords<W>& high) {
    slots_[tree % kSlots] = {tree, leaf.at(), low, high};
  }

 private:
  static constexpr size_t kSlots = 16;
  struct Slot {
    uint64_t tree = 0;  // numbers start at 1
    std::byte* leaf = nullptr;
    KeyWords<W> low{};
    KeyWords<W> high{};
  };
  static inline thread_local std::array<Slot, kSlots> slots_;
};

}  // namespace gannet::index::xstore
