// InlineLeaf: a leaf of 16 unsorted slots, each with a key and its record next to each other (leaf.h).
//
// For integer keys (W = 1) it is exactly five lines; "version" is the first word of each line:
//
//   line 0 | state   | meta    | low     | high    | key 0   | rec 0   | key 1   | rec 1   |
//   line 1 | version | key 2   | rec 2   | key 3   | rec 3   | key 4   | rec 4   | key 5   |
//   line 2 | version | rec 5   | key 6   | rec 6   | key 7   | rec 7   | key 8   | rec 8   |
//   line 3 | version | key 9   | rec 9   | key 10  | rec 10  | key 11  | rec 11  | key 12  |
//   line 4 | version | rec 12  | key 13  | rec 13  | key 14  | rec 14  | key 15  | rec 15  |
//
// With byte keys of W words, low, high and each key are W words each, in the same order of fields.
#pragma once

#include <cstdint>

#include "index/xstore/tree/leaf_frame.h"
#include "index/xstore/tree/record_keys.h"

namespace gannet::index::xstore {

template <int W>
using InlineLayout = LeafLayoutOf<W, 16, W + 1>;
static_assert(InlineLayout<1>::kDataWords == 35 && InlineLayout<1>::kLines == 5 && InlineLayout<1>::LinesFor(9) == 3);

template <int W>
class InlineLeaf : public LeafFrame<W, InlineLayout<W>> {
  using Base = LeafFrame<W, InlineLayout<W>>;
  using Base::at_;

 public:
  using typename Base::Layout;
  using typename Base::Words;
  static constexpr bool kKeysInRecords = false;

  using Base::Base;

  Words key(int slot) const {
    return Base::LoadWords([slot](int i) { return Layout::SlotAt(slot, i); });
  }
  uint64_t record(int slot) const { return LoadWord(at_ + Layout::RecordAt(slot)); }

  // The slot below `count` that holds `key`, or -1.
  int FindSlot(const Words& key, uint32_t count) const {
    if constexpr (W == 1) {
      uint32_t equal = 0;
#pragma GCC unroll 16
      for (int slot = 0; slot < Layout::kSlots; ++slot) {
        equal |= static_cast<uint32_t>(LoadWord(at_ + Layout::SlotAt(slot, 0)) == key.words[0]) << slot;
      }
      equal &= (1u << count) - 1;
      return equal == 0 ? -1 : __builtin_ctz(equal);
    } else {
      for (int slot = 0; slot < static_cast<int>(count); ++slot) {
        if (InlineLeaf::key(slot) == key) return slot;
      }
      return -1;
    }
  }

  // The slot in [first, end) that holds `key` and a record, or -1.
  int FindSlotIn(const Words& key, int first, int end) const {
    for (int slot = first; slot < end; ++slot) {
      if (InlineLeaf::key(slot) == key && record(slot) != 0) return slot;
    }
    return -1;
  }

  // The functions below are those of TaggedLeaf, for code for both.
  Words key(const RecordKeys&, int slot) const {
    return key(slot);
  }
  uint64_t record(const RecordKeys&, int slot) const {
    return record(slot);
  }
  int FindSlot(const RecordKeys&, const Words& key, uint32_t count) const {
    return FindSlot(key, count);
  }
  int FindPair(const RecordKeys&, const Words& key, uint64_t record, uint32_t count) const {
    const int slot = FindSlot(key, count);
    return slot >= 0 && InlineLeaf::record(slot) == record ? slot : -1;
  }
  static int PlaceFor(const RecordKeys&, const Words&, uint32_t count) {
    return static_cast<int>(count);
  }

  // The functions below are for the lock's holder.

  void set_pair(int slot, const Words& key, uint64_t record) {
    for (int i = 0; i < W; ++i) StoreWord(at_ + Layout::SlotAt(slot, i), key.words[i]);
    set_record(slot, record);
  }
  void set_record(int slot, uint64_t record) {
    StoreWord(at_ + Layout::RecordAt(slot), record);
  }
  // Adds a pair in `slot`, which PlaceFor gave. `meta`: of now.
  void Insert(int slot, const Words& key, uint64_t record, const LeafMeta& meta) {
    Base::MarkSlotsBusy(slot, slot);
    set_pair(slot, key, record);
    Base::set_meta({.right = meta.right, .incarnation = meta.incarnation, .count = meta.count + 1});
  }
  // Removes the pair of a slot: the last pair moves there.
  void Remove(int slot, const LeafMeta& meta) {
    const int last = static_cast<int>(meta.count) - 1;
    if (slot != last) {
      Base::MarkSlotsBusy(slot, slot);
      set_pair(slot, key(last), record(last));
    }
    Base::MarkSlotsBusy(last, last);
    Base::ClearSlots(last, last + 1);
    Base::set_meta({.right = meta.right, .incarnation = meta.incarnation, .count = meta.count - 1});
  }
};

}  // namespace gannet::index::xstore
