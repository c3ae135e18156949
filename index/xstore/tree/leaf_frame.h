// LeafFrame: what the two formats of a leaf have in common: the first words, the lock, and the lines' versions.
//
//   inline_leaf.h   slots with a key and its record; for integers and for short byte keys
//   tagged_leaf.h   slots with a tag and the place of the record, which holds the key; for long byte keys
//
// leaf.h says what readers may conclude from either. A leaf is a versioned object (rdma/versioned.h). Its data is
//
//   | meta | low: W words | high: W words | slot 0 | slot 1 | ...
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/cache_line.h"
#include "index/xstore/tree/key_codec.h"
#include "index/xstore/tree/leaf_state.h"
#include "rdma/versioned.h"

namespace gannet::index::xstore {

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

// Byte layout of a leaf with `Slots` slots of `SlotWords` words, the last of which leads to the record.
template <int W, int Slots, int SlotWords>
struct LeafLayoutOf {
  static constexpr int kSlots = Slots;
  static constexpr size_t kHeadWords = 1 + 2 * W;
  static constexpr size_t kDataWords = kHeadWords + size_t{Slots} * SlotWords;
  static constexpr size_t kLines = rdma::LinesFor(kDataWords * kWordBytes);
  static constexpr size_t kBytes = kLines * kLineBytes;

  static constexpr size_t Place(size_t data_word) { return rdma::PlaceOf(data_word * kWordBytes); }
  static constexpr size_t Meta() { return Place(0); }
  static constexpr size_t Low(int word) { return Place(1 + word); }
  static constexpr size_t High(int word) { return Place(1 + W + word); }
  // Number of lines up to the high fence.
  static constexpr size_t kFenceLines = High(W - 1) / kLineBytes + 1;
  static constexpr size_t SlotAt(int slot, int word) {
    return Place(kHeadWords + static_cast<size_t>(slot) * SlotWords + static_cast<size_t>(word));
  }
  static constexpr size_t RecordAt(int slot) { return SlotAt(slot, SlotWords - 1); }
  // The lines of one slot: [FirstLineOf, EndLineOf).
  static constexpr size_t FirstLineOf(int slot) { return SlotAt(slot, 0) / kLineBytes; }
  static constexpr size_t EndLineOf(int slot) { return RecordAt(slot) / kLineBytes + 1; }
  // Number of lines, from the first, that hold the fences and `count` slots.
  static constexpr size_t LinesFor(uint32_t count) {
    return count == 0 ? kFenceLines : EndLineOf(static_cast<int>(count) - 1);
  }
};

// A leaf in shared memory, or its image in a buffer. Loads are not consistent by themselves: load state() before and
// after them (owner), or check rdma::IsConsistentImage (client).
template <int W, class LayoutOfLeaf>
class LeafFrame {
 public:
  using Layout = LayoutOfLeaf;
  using Words = KeyWords<W>;

  LeafFrame() = default;
  explicit LeafFrame(std::byte* at) : at_(at) {}
  explicit LeafFrame(const std::byte* at) : at_(const_cast<std::byte*>(at)) {}

  std::byte* at() const { return at_; }
  bool is_null() const { return at_ == nullptr; }
  friend bool operator==(LeafFrame, LeafFrame) = default;

  uint64_t state() const { return LoadWord(at_); }
  LeafMeta meta() const { return LeafMeta::Unpack(LoadWord(at_ + Layout::Meta())); }
  Words low() const {
    return LoadWords([](int i) { return Layout::Low(i); });
  }
  Words high() const {
    return LoadWords([](int i) { return Layout::High(i); });
  }
  uint64_t low_word(int i) const { return LoadWord(at_ + Layout::Low(i)); }
  uint64_t high_word(int i) const { return LoadWord(at_ + Layout::High(i)); }
  // True if it has the key between its fences. Most keys differ from them in the first word.
  bool Covers(const Words& key) const {
    int i = 0;
    while (i < W - 1 && low_word(i) == key.words[i]) ++i;
    if (key.words[i] < low_word(i)) return false;
    i = 0;
    while (i < W - 1 && high_word(i) == key.words[i]) ++i;
    return key.words[i] <= high_word(i);
  }

  void PrefetchAll() const {
    for (size_t line = 0; line < Layout::kLines; ++line) Prefetch(at_ + line * kLineBytes);
  }

  // The functions below are for the lock's holder.

  // Sets the lock bit if the state word is still `state` (unlocked). Then everything loaded since `state` is
  // consistent, and stays so.
  bool TryLock(uint64_t state) { return CompareAndSwapWord(at_, state, state | rdma::kLockBit) == state; }
  // Does what TryLock does, for a change that leaves all sets of keys as they are: witnesses stay valid meanwhile.
  bool TryLockForStructure(uint64_t state) {
    return CompareAndSwapWord(at_, state, LockedForStructure(state)) == state;
  }
  // Unlocks a leaf that was not changed.
  void Unlock(uint64_t state) { StoreWord(at_, state); }
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
  // Marks the lines of some slots busy before they change, from `first` to `last`. (The first line is covered by the
  // lock.)
  void MarkSlotsBusy(int first, int last) {
    for (size_t line = std::max<size_t>(Layout::FirstLineOf(first), 1); line < Layout::EndLineOf(last); ++line) {
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
  // Clears the records of slots that are no longer counted. Their lines must be busy.
  void ClearSlots(int first, int end) {
    for (int slot = first; slot < end; ++slot) StoreWord(at_ + Layout::RecordAt(slot), 0);
  }

 protected:
  template <class Place>
  Words LoadWords(Place place) const {
    Words key;
    // The places are constants then: they are not, in a loop, because lines begin with versions.
#pragma GCC unroll 9
    for (int i = 0; i < W; ++i) key.words[i] = LoadWord(at_ + place(i));
    return key;
  }

  std::byte* at_ = nullptr;
};

}  // namespace gannet::index::xstore
