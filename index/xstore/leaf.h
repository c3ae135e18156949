// A leaf of XTree in registered memory: a versioned object (rdma/versioned.h) with 16 unsorted slots, each with a key
// and its record side by side.
//
// For integer keys (W = 1) it is exactly five lines; "version" is the first word of each line:
//
//   line 0 | state   | meta    | low     | high    | key 0   | rec 0   | key 1   | rec 1   |
//   line 1 | version | key 2   | rec 2   | key 3   | rec 3   | key 4   | rec 4   | key 5   |
//   line 2 | version | rec 5   | key 6   | rec 6   | key 7   | rec 7   | key 8   | rec 8   |
//   line 3 | version | key 9   | rec 9   | key 10  | rec 10  | key 11  | rec 11  | key 12  |
//   line 4 | version | rec 12  | key 13  | rec 13  | key 14  | rec 14  | key 15  | rec 15  |
//
//   state   lock bit 63 and version; the leaf's witness word: +1 whenever the set of keys in [low, high] may have
//           changed
//   meta    | right sibling, in units of 64 bytes (32) | incarnation (24) | count (8) |
//   low     the leaf covers the keys from low to high, both included, present or absent
//   high    the right sibling's low is high + 1
//
// With byte keys of W words, low, high and each key are W words each, in the same order of fields.
//
// Life cycle. A leaf's incarnation grows when it stops covering some keys: at a split (the upper part moves to a new
// right sibling) and at its death (an empty leaf is unlinked; then low > high, so it covers nothing). Otherwise its low
// fence only falls and its high fence only rises, when it takes over the range of a dead neighbour. At every moment the
// unlocked leaves cover disjoint ranges; all other keys are in ranges of locked leaves.
//
// What a racing reader may conclude from an image whose lines carry one version, unlocked and not busy:
//   - the first lines, up to the fences: what the leaf covers; up to `count` slots: which keys it has, and which not;
//   - any lines: the pairs in them. A slot that is not counted has a null record (also in a dead leaf, and in a block
//     that waits to become one), and lines are busy while their pairs change. So a key with a record is in the index at
//     that moment, even if the block has become another leaf. A key that is not in these lines may be in others.
// The rest follows versioned.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/cache_line.h"
#include "index/xstore/key_codec.h"
#include "rdma/versioned.h"

namespace gannet::index::xstore {

inline constexpr int kLeafSlots = 16;

struct LeafMeta {
  uint32_t right = 0;        // 0: none
  uint32_t incarnation = 0;  // 24 bits
  uint32_t count = 0;

  static constexpr uint32_t kIncarnationMask = (1u << 24) - 1;

  constexpr uint64_t Pack() const {
    return uint64_t{right} << 32 | uint64_t{incarnation & kIncarnationMask} << 8 | (count & 0xffu);
  }
  static constexpr LeafMeta Unpack(uint64_t word) {
    return {.right = static_cast<uint32_t>(word >> 32),
            .incarnation = static_cast<uint32_t>(word >> 8) & kIncarnationMask,
            .count = static_cast<uint32_t>(word & 0xff)};
  }
};

// Byte layout.
template <int W>
struct LeafLayout {
  static constexpr size_t kHeadWords = 1 + 2 * W;
  static constexpr size_t kPairWords = W + 1;
  static constexpr size_t kDataWords = kHeadWords + kLeafSlots * kPairWords;
  static constexpr size_t kLines = rdma::LinesFor(kDataWords * kWordBytes);
  static constexpr size_t kBytes = kLines * kLineBytes;

  static constexpr size_t Place(size_t data_word) { return rdma::PlaceOf(data_word * kWordBytes); }
  static constexpr size_t Meta() { return Place(0); }
  static constexpr size_t Low(int word) { return Place(1 + word); }
  static constexpr size_t High(int word) { return Place(1 + W + word); }
  // Number of lines up to the high fence.
  static constexpr size_t kFenceLines = High(W - 1) / kLineBytes + 1;
  static constexpr size_t KeyAt(int slot, int word) {
    return Place(kHeadWords + static_cast<size_t>(slot) * kPairWords + static_cast<size_t>(word));
  }
  static constexpr size_t RecordAt(int slot) { return KeyAt(slot, W); }
  // The lines of one slot's pair: [FirstLineOf, EndLineOf).
  static constexpr size_t FirstLineOf(int slot) { return KeyAt(slot, 0) / kLineBytes; }
  static constexpr size_t EndLineOf(int slot) { return RecordAt(slot) / kLineBytes + 1; }
  // Number of lines, from the first, that hold the fences and `count` slots.
  static constexpr size_t LinesFor(uint32_t count) {
    return count == 0 ? kFenceLines : EndLineOf(static_cast<int>(count) - 1);
  }
};
static_assert(LeafLayout<1>::kDataWords == 35 && LeafLayout<1>::kLines == 5 && LeafLayout<1>::LinesFor(9) == 3);

// A leaf in shared memory, or its image in a buffer. Loads are not consistent by themselves: load state() before and
// after them (owner), or check rdma::IsConsistentImage (client).
template <int W>
class Leaf {
 public:
  using Layout = LeafLayout<W>;
  using Words = KeyWords<W>;

  Leaf() = default;
  explicit Leaf(std::byte* at) : at_(at) {}
  explicit Leaf(const std::byte* at) : at_(const_cast<std::byte*>(at)) {}

  std::byte* at() const { return at_; }
  bool is_null() const { return at_ == nullptr; }
  friend bool operator==(Leaf, Leaf) = default;

  uint64_t state() const { return LoadWord(at_); }
  LeafMeta meta() const { return LeafMeta::Unpack(LoadWord(at_ + Layout::Meta())); }
  Words low() const {
    return LoadWords([](int i) { return Layout::Low(i); });
  }
  Words high() const {
    return LoadWords([](int i) { return Layout::High(i); });
  }
  Words key(int slot) const {
    return LoadWords([slot](int i) { return Layout::KeyAt(slot, i); });
  }
  uint64_t record(int slot) const { return LoadWord(at_ + Layout::RecordAt(slot)); }
  bool Covers(const Words& key) const { return low() <= key && key <= high(); }

  void PrefetchAll() const {
    for (size_t line = 0; line < Layout::kLines; ++line) Prefetch(at_ + line * kLineBytes);
  }
  // The slot below `count` that holds `key`, or -1.
  int FindSlot(const Words& key, uint32_t count) const {
    if constexpr (W == 1) {
      uint32_t equal = 0;
#pragma GCC unroll 16
      for (int slot = 0; slot < kLeafSlots; ++slot) {
        equal |= static_cast<uint32_t>(LoadWord(at_ + Layout::KeyAt(slot, 0)) == key.words[0]) << slot;
      }
      equal &= (1u << count) - 1;
      return equal == 0 ? -1 : __builtin_ctz(equal);
    } else {
      for (int slot = 0; slot < static_cast<int>(count); ++slot) {
        if (Leaf::key(slot) == key) return slot;
      }
      return -1;
    }
  }

  // The slot in [first, end) that holds `key` and a record, or -1.
  int FindSlotIn(const Words& key, int first, int end) const {
    for (int slot = first; slot < end; ++slot) {
      if (Leaf::key(slot) == key && record(slot) != 0) return slot;
    }
    return -1;
  }

  // The functions below are for the lock's holder.

  // Sets the lock bit if the state word is still `state` (unlocked). Then everything loaded since `state` is
  // consistent, and stays so.
  bool TryLock(uint64_t state) {
    return CompareAndSwapWord(at_, state, state | rdma::kLockBit) == state;
  }
  // Unlocks a leaf that was not changed.
  void Unlock(uint64_t state) {
    StoreWord(at_, state);
  }
  // Gives all lines the new version and unlocks.
  void Publish(uint64_t state) {
    const uint64_t version = rdma::VersionWord(state);
#pragma GCC unroll 8
    for (size_t line = 1; line < Layout::kLines; ++line) StoreWord(at_ + line * kLineBytes, version);
    PreemptionPoint();
    StoreWord(at_, state);
  }
  void MarkBusy() {
    rdma::BeginWrite(at_, Layout::kLines);
  }
  // Marks the lines of one slot's pair busy before it changes. (The first line is covered by the lock.)
  void MarkSlotBusy(int slot) {
    for (size_t line = std::max<size_t>(Layout::FirstLineOf(slot), 1); line < Layout::EndLineOf(slot); ++line) {
      StoreWord(at_ + line * kLineBytes, rdma::kLineBusy);
    }
  }

  void set_meta(const LeafMeta& meta) {
    StoreWord(at_ + Layout::Meta(), meta.Pack());
  }
  void set_low(const Words& key) {
    for (int i = 0; i < W; ++i) StoreWord(at_ + Layout::Low(i), key.words[i]);
  }
  void set_high(const Words& key) {
    for (int i = 0; i < W; ++i) StoreWord(at_ + Layout::High(i), key.words[i]);
  }
  void set_pair(int slot, const Words& key, uint64_t record) {
    for (int i = 0; i < W; ++i) StoreWord(at_ + Layout::KeyAt(slot, i), key.words[i]);
    set_record(slot, record);
  }
  void set_record(int slot, uint64_t record) {
    StoreWord(at_ + Layout::RecordAt(slot), record);
  }
  // Clears the records of slots that are no longer counted. Their lines must be busy.
  void ClearSlots(int first, int end) {
    for (int slot = first; slot < end; ++slot) set_record(slot, 0);
  }

 private:
  template <class Place>
  Words LoadWords(Place place) const {
    Words key;
    for (int i = 0; i < W; ++i) key.words[i] = LoadWord(at_ + place(i));
    return key;
  }

  std::byte* at_ = nullptr;
};

}  // namespace gannet::index::xstore
