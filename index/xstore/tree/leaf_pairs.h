// LeafPairs: the pairs of one leaf within a scan's range, and how they are added to its result. Used for the owner's
// leaves and for clients' images.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

#include "index/index.h"
#include "index/xstore/tree/leaf.h"

namespace gannet::index::xstore {

template <int W>
struct LeafPairs {
  struct Pair {
    KeyWords<W> key;
    uint64_t record;
    friend bool operator<(const Pair& a, const Pair& b) { return a.key < b.key; }
  };

  int size = 0;
  Pair pairs[LeafLayout<W>::kSlots];

  // Takes the pairs with keys in [from, to] of a leaf that covers [low, high], in slot order.
  void Take(const RecordKeys& records, Leaf<W> leaf, uint32_t count, const KeyWords<W>& low, const KeyWords<W>& high,
            const KeyWords<W>& from, const KeyWords<W>& to) {
    if constexpr (Leaf<W>::kKeysInRecords) {
      size = 0;
      if (to < from) return;
      const int slots = SlotsOf(count);
      const Bounds bounds(low, high, from, to);
      // They are in order.
      const int first = from <= low ? 0 : leaf.PlaceFor(records, from, static_cast<uint32_t>(slots));
      const int ahead = high <= to ? slots : kAhead;
      for (int slot = first; slot < std::min(first + ahead, slots); ++slot) records.PrefetchFor<W>(leaf.entry(slot));
      for (int slot = first; slot < slots; ++slot) {
        if (slot + ahead < slots) records.PrefetchFor<W>(leaf.entry(slot + ahead));
        const shared_leaf::TaggedEntry entry = leaf.entry(slot);
        const KeyWords<W> key = records.KeyOf<W>(entry);
        if (bounds.last < key) break;
        if (bounds.first <= key) pairs[size++] = {key, records.AddressOf(entry)};
      }
    } else {
      Take(leaf, count, from, to);
    }
  }
  // Takes pairs, as above, from leaves that have their keys themselves, of the owner or of a client.
  void Take(Leaf<W> leaf, uint32_t count, const KeyWords<W>& from, const KeyWords<W>& to) {
    size = 0;
    const int slots = SlotsOf(count);
    for (int slot = 0; slot < slots; ++slot) {
      const KeyWords<W> key = leaf.key(slot);
      if (key < from || to < key) continue;
      pairs[size++] = {key, leaf.record(slot)};
    }
  }
  // Takes them from an image at a client, which has READ the keys of the slots and knows the owner.
  void TakeRead(std::span<const KeyWords<W>> keys, rdma::NodeId owner, Leaf<W> leaf, const KeyWords<W>& from,
                const KeyWords<W>& to) {
    size = 0;
    const int slots = std::min(SlotsOf(leaf.meta().count), static_cast<int>(keys.size()));
    const Bounds bounds(leaf.low(), leaf.high(), from, to);
    for (int slot = 0; slot < slots; ++slot) {
      const KeyWords<W>& key = keys[static_cast<size_t>(slot)];
      if (key < bounds.first || bounds.last < key) continue;
      pairs[size++] = {key, rdma::GlobalAddress(owner, leaf.entry(slot).offset()).bits()};
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

 private:
  static constexpr int kAhead = 6;  // records that are prefetched where few may be in the range

  // The part of a range that a leaf covers. A key in a record may have been overwritten (tagged_leaf.h): it must not
  // come between those of other leaves.
  struct Bounds {
    Bounds(const KeyWords<W>& low, const KeyWords<W>& high, const KeyWords<W>& from, const KeyWords<W>& to)
        : first(std::max(from, low)), last(std::min(to, high)) {}
    KeyWords<W> first;
    KeyWords<W> last;
  };

  static int SlotsOf(uint32_t count) { return static_cast<int>(std::min<uint32_t>(count, LeafLayout<W>::kSlots)); }
  static void EmitOne(const Pair& pair, KeyKind kind, ScanResult* result) {
    Entry& entry = result->entries.emplace_back();
    Decode<W>(pair.key, kind, &entry.key);
    entry.record = rdma::GlobalAddress::FromBits(pair.record);
  }
};

// The records alone of the owner's leaf within a scan's range, in order. Take is that of LeafPairs.
template <int W>
class LeafRecords {
 public:
  std::span<rdma::GlobalAddress> all() { return {records_ + first_, static_cast<size_t>(size_)}; }

  void Take(const RecordKeys& keys, Leaf<W> leaf, uint32_t count, const KeyWords<W>& low, const KeyWords<W>& high,
            const KeyWords<W>& from, const KeyWords<W>& to) {
    first_ = size_ = 0;
    if constexpr (Leaf<W>::kKeysInRecords) {
      if (to < from) return;
      // Keys are read only in the leaves at the ends of a range. Their order is that of the slots.
      const uint32_t slots = std::min<uint32_t>(count, LeafLayout<W>::kSlots);
      const int first = from <= low ? 0 : leaf.PlaceFor(keys, from, slots);
      const int end = high <= to ? static_cast<int>(slots) : leaf.PlaceFor(keys, to.Next(), slots);
      first_ = static_cast<int>(leaf.CopyAddresses(keys, first, end, records_));
      size_ = std::max(end - first, 0);
    } else if constexpr (W == 1) {
      TakeByRank(leaf, std::min<uint32_t>(count, LeafLayout<1>::kSlots), from.words[0], to.words[0]);
    } else {
      LeafPairs<W> pairs;
      pairs.Take(keys, leaf, count, low, high, from, to);
      pairs.Sort();
      size_ = pairs.size;
      for (int i = 0; i < size_; ++i) records_[i] = rdma::GlobalAddress::FromBits(pairs.pairs[i].record);
    }
  }

 private:
  static constexpr size_t Room() {
    if constexpr (Leaf<W>::kKeysInRecords) return Leaf<W>::kWordsOfLines;
    return 2 * LeafLayout<W>::kSlots;
  }

  // Sorts without a branch that depends on the keys: each is compared with all, by vectors, and the number of those
  // that are below it is its place. A slot that does not count gets the highest key, which is below none, and a place
  // behind all others.
  // (While a pair moves, two slots have its key, and a place stays undefined. The leaf's state tells it afterwards.)
  void TakeByRank(Leaf<1> leaf, uint32_t count, uint64_t from, uint64_t to) {
    constexpr int kSlots = LeafLayout<1>::kSlots;
    constexpr int kInVector = 4;
    constexpr int kVectors = kSlots / kInVector;
    using Signed = int64_t __attribute__((vector_size(kInVector * kWordBytes)));
    constexpr uint64_t kSign = uint64_t{1} << 63;  // vectors compare signed words
    const Signed first = Signed{} + static_cast<int64_t>(from ^ kSign);
    const Signed last = Signed{} + static_cast<int64_t>(to ^ kSign);
    Signed slots = {0, 1, 2, 3};
    Signed keys[kVectors];
    Signed outside[kVectors];  // -1 or 0
    Signed below[kVectors] = {};
    int size = kSlots;
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i, slots += kInVector) {
      const auto key = [&](int slot) { return static_cast<int64_t>(leaf.key(i * kInVector + slot).words[0] ^ kSign); };
      keys[i] = Signed{key(0), key(1), key(2), key(3)};
      outside[i] = (keys[i] < first) | (keys[i] > last) | (slots >= static_cast<int64_t>(count));
      keys[i] = outside[i] ? Signed{} + INT64_MAX : keys[i];
    }
    alignas(Signed) int64_t key[kSlots];
    std::memcpy(key, keys, sizeof key);
    for (uint32_t slot = 0; slot < count; ++slot) {
      const Signed other = Signed{} + key[slot];
#pragma GCC unroll 4
      for (int i = 0; i < kVectors; ++i) below[i] -= keys[i] > other;  // true is -1
    }
    alignas(Signed) int64_t place[kSlots];
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) {
      const Signed at = below[i] - kSlots * outside[i];
      std::memcpy(place + i * kInVector, &at, sizeof at);
      const auto words = reinterpret_cast<__m256d>(outside[i]);
      size -= std::popcount(static_cast<uint32_t>(_mm256_movemask_pd(words)));
    }
#pragma GCC unroll 16
    for (int slot = 0; slot < kSlots; ++slot) {
      records_[place[slot]] = rdma::GlobalAddress::FromBits(leaf.record(slot));
    }
    size_ = size;
  }

  int first_ = 0;
  int size_ = 0;
  rdma::GlobalAddress records_[Room()];
};

}  // namespace gannet::index::xstore
