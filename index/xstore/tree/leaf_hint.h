// LeafHint: the leaves that a thread used last. The order lines of one order, or the orders of one district, fall into
// the same leaf repeatedly; a hint saves them the descent.
//
// One small table for all trees. A slot is chosen by tree and by the upper half of the key: in composite keys that half
// separates key ranges (warehouse and district), and keys that differ only in the lower half share one slot. Hints hold
// copies of the first words of the fences, so that one that does not fit costs no cache miss; one that fits is only a
// guess, which the leaf itself confirms. Leaves stay leaves (block_pool.h), so following a stale hint is harmless, and
// a tree's number is never reused.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/thread.h"
#include "index/xstore/tree/leaf.h"

namespace gannet::index::xstore {

template <int W>
class LeafHint {
 public:
  // The leaf that may cover `key`; null if there is no hint.
  static Leaf<W> Get(uint64_t tree, const KeyWords<W>& key) {
    const Slot& slot = Slots()[IndexOf(tree, key)];
    const Start start = StartOf(key.words);
    if (slot.tree != tree || start < slot.low || slot.high < start) return Leaf<W>();
    return Leaf<W>(slot.leaf);
  }
  // `leaf` covered `key` just now. Its fences are read again: if it changes meanwhile, the hint is a bad guess.
  static void Set(uint64_t tree, const KeyWords<W>& key, Leaf<W> leaf) {
    Slot& slot = Slots()[IndexOf(tree, key)];
    slot.tree = tree;
    slot.leaf = leaf.at();
    for (int i = 0; i < kStartWords; ++i) slot.low.words[i] = leaf.low_word(i);
    for (int i = 0; i < kStartWords; ++i) slot.high.words[i] = leaf.high_word(i);
  }

 private:
  static constexpr int kStartWords = std::min(W, 3);
  using Start = KeyWords<kStartWords>;
  static Start StartOf(const std::array<uint64_t, W>& words) {
    Start start;
    std::copy_n(words.begin(), kStartWords, start.words.begin());
    return start;
  }
  static constexpr int kBits = W == 1 ? 8 : 5;
  struct Slot {
    uint64_t tree = 0;  // numbers start at 1
    std::byte* leaf = nullptr;
    Start low{};
    Start high{};
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
