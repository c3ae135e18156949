// LeafPairs: the pairs of one leaf within a scan's range, and how they are added to its result. Used for the owner's
// leaves and for clients' images.
#pragma once

#include <algorithm>
#include <cstdint>

#include "index/index.h"
#include "index/xstore/leaf.h"

namespace gannet::index::xstore {

template <int W>
struct LeafPairs {
  struct Pair {
    KeyWords<W> key;
    uint64_t record;
    friend bool operator<(const Pair& a, const Pair& b) { return a.key < b.key; }
  };

  int size = 0;
  Pair pairs[kLeafSlots];

  // Takes the pairs with keys in [from, to], in slot order.
  void Take(Leaf<W> leaf, uint32_t count, const KeyWords<W>& from, const KeyWords<W>& to) {
    size = 0;
    const int slots = static_cast<int>(std::min<uint32_t>(count, kLeafSlots));
    for (int slot = 0; slot < slots; ++slot) {
      const KeyWords<W> key = leaf.key(slot);
      if (key < from || to < key) continue;
      pairs[size++] = {key, leaf.record(slot)};
    }
  }

  // Appends at most `room` (> 0) of them in scan order.
  void Emit(KeyKind kind, bool reverse, size_t room, ScanResult* result) {
    if (size == 0) return;
    if (room == 1) {
      EmitOne(reverse ? *std::max_element(pairs, pairs + size) : *std::min_element(pairs, pairs + size), kind, result);
      return;
    }
    Sort();
    const int n = static_cast<int>(std::min<size_t>(room, static_cast<size_t>(size)));
    for (int i = 0; i < n; ++i) EmitOne(pairs[reverse ? size - 1 - i : i], kind, result);
  }

 private:
  static void EmitOne(const Pair& pair, KeyKind kind, ScanResult* result) {
    Entry& entry = result->entries.emplace_back();
    Decode<W>(pair.key, kind, &entry.key);
    entry.record = rdma::GlobalAddress::FromBits(pair.record);
  }

  // Insertion sort: pairs that were appended in order are sorted already.
  void Sort() {
    for (int i = 1; i < size; ++i) {
      if (pairs[i - 1] < pairs[i]) continue;
      const Pair pair = pairs[i];
      int at = i;
      for (; at > 0 && pair < pairs[at - 1]; --at) pairs[at] = pairs[at - 1];
      pairs[at] = pair;
    }
  }
};

}  // namespace gannet::index::xstore
