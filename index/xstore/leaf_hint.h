// LeafHint: the leaves that a thread used last. The order lines of one order, or the orders of one district, fall into
// the same leaf repeatedly; a hint saves them the descent.
//
// One small table for all trees. A slot is chosen by tree and by the upper half of the key: in composite keys that half
// separates key ranges (warehouse and district), and keys that differ only in the lower half share one slot. Hints hold
// copies of the fences, so that one that does not fit costs no cache miss; one that fits is only a guess, which the
// leaf itself confirms. Leaves stay leaves (block_pool.h), so following a stale hint is harmless, and a tree's number
// is never reused.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/thread.h"
#include "index/xstore/leaf.h"

namespace gannet::index::xstore {

template <int W>
class LeafHint {
 public:
  // The leaf that may cover `key`; null if there is no hint.
  static Leaf<W> Get(uint64_t tree, const KeyWords<W>& key) {
    const Slot& slot = Slots()[IndexOf(tree, key)];
    if (slot.tree != tree || key < slot.low || slot.high < key) return Leaf<W>();
    return Leaf<W>(slot.leaf);
  }
  // `leaf` covered `key` just now, with these fences.
  static void Set(uint64_t tree, const KeyWords<W>& key, Leaf<W> leaf, const KeyWords<W>& low,
                  const KeyWords<W>& high) {
    Slots()[IndexOf(tree, key)] = {tree, leaf.at(), low, high};
  }

 private:
  // A slot of the longest keys takes 2 KiB.
  static constexpr int kBits = W == 1 ? 8 : W <= 9 ? 5 : 2;
  struct Slot {
    uint64_t tree = 0;  // numbers start at 1
    std::byte* leaf = nullptr;
    KeyWords<W> low{};
    KeyWords<W> high{};
  };
  static size_t IndexOf(uint64_t tree, const KeyWords<W>& key) {
    return ((key.words[0] >> 32) + (tree << 32)) * 0x9e3779b97f4a7c15ull >> (64 - kBits);
  }
  using Table = std::array<Slot, size_t{1} << kBits>;
  static Table& Slots() {
    if (Runtime* runtime = Runtime::Current()) [[unlikely]]
      return SimulatedSlots(runtime);
    return slots_;
  }
  static Table& SimulatedSlots(Runtime* runtime) {
    std::shared_ptr<void>& local = runtime->Local(kLeafHintSlot + kNumberOfWidth<W>);
    if (local == nullptr) local = std::make_shared<Table>();
    return *static_cast<Table*>(local.get());
  }
  static_assert(kLeafHintSlot + std::size(kWidths) <= kNumLocalSlots);

  static inline thread_local Table slots_;
};

}  // namespace gannet::index::xstore
