// The shared leaf: a node of an index that clients change by verbs (DEX, VLDB'24; ROLEX, FAST'23). Seven lines:
//
//   line 0      | state | slots | low | high | right | versions of lines 1 to 6, 32 bits each |
//   lines 1-6   | version | 56 bytes of entries |
//
//   state    lock word (lock_word.h). Its version is that of the leaf's last change; "absent" means that the leaf is
//            dead: no longer, or not yet, part of the index.
//   slots    | 0 (6) | fences (4) | last (6) | level (6) | bitmap (42) |: which slots have an entry of the index, from
//            the lowest bit on; the level, 0 for a leaf and more for an inner node; the slot that was filled last;
//            where the fences are, if they are not in line 0
//   low      the leaf covers the keys from low to high, both included, present or absent
//   right    address of the right sibling, null if there is none; its low is high + 1
//   version  of a line: the leaf's version when the line was written last, marked as in any versioned object. Line 0
//            has the low 32 bits of each.
//
// This is the leaf of integer keys. That of byte keys (tagged_leaf.h) has one to four more lines, for the fences; all
// rules below hold for both.
//
// Line 0 is the commit point of every change, except Replace. A change begins with a CAS that locks the state word, and
// expects the value that the changer's image has. So the image was current when the lock was taken. Then follow WRITEs
// of whole lines, in this order (leaf_draft.h makes them):
//
//   insert   the lines with new entries; line 0, which counts their slots and unlocks
//   remove   line 0. The entry stays in its line until the slot is used again.
//   replace  the line, which commits: the old entry is gone; line 0
//   split    the right leaf, locked, which nobody links yet; line 0 with the new high and right, without the slots of
//            the entries that moved; the state word of the right leaf, with the next version. It may insert a key into
//            either leaf.
//   absorb   of a right leaf with few entries or none, which is locked, too: the lines with its entries; line 0 with
//            its high and right; its state word: dead
//
// Whoever has written a line publishes its version, also if it then gives up. So no line ever has a first word again
// that it had before, as fabric.h (2) asks. A lock that is given back before any line was written is a CAS back.
//
// What a racing reader may conclude.
//   - From an image of the whole leaf that LookAtLeaf calls whole: which keys the index has, from low to high, when the
//     READ saw line 0. As long as the state word stays the same, the index has these keys (witness).
//   - From a single slot line: nothing by itself. An entry there may be of the index, or not yet, or no longer, or of
//     another leaf now. Only the record that it leads to decides.
//   - From images of line 0 and of one slot line that were READ at any two moments, in any order: if ProvesLine, the
//     index had the entries of the line's counted slots when the READ saw line 0, and the leaf covered their keys. For
//     line 0 then said that the line has this version and that no change is in progress (a Replace, which commits
//     with its line, locks line 0 before and unlocks it after). A line has one content for each version that it ever
//     has. So what was READ, earlier or later, is what the line had at that moment. Of keys that are not found the two
//     lines say nothing: these may be in another line. Each of the lines must be from one WRITE
//     (rdma::Capabilities::line_consistent).
//
// A client can die between any two WRITEs. The owner then makes the leaf whole without knowing what the client wanted
// (leaf_repair.h). docs/models/leaf.pml is a model of all this; each rule above is needed there.
//
// Blocks of leaves remain leaves of the same index (block_pool.h). They lie in the writable part of the heap, unless
// only the owner changes the index (IndexRights::kOwnerOnly); then its threads keep the same rules. A client that does
// not keep them can write anything into leaves of the writable part. So nothing in an image is trusted: slots beyond
// the last are ignored, and a reader that goes right must check that it comes to greater keys.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/cache_line.h"
#include "index/lock_word.h"
#include "rdma/global_address.h"
#include "rdma/versioned.h"

namespace gannet::index::shared_leaf {

inline constexpr int kSlotLines = 6;
inline constexpr int kLeafLines = 1 + kSlotLines;
inline constexpr size_t kLeafBytes = kLeafLines * kLineBytes;
inline constexpr int kMostSlots = 42;
inline constexpr size_t kMostFenceLines = 4;
// Bytes of a leaf with this number of lines for its fences.
constexpr size_t LeafBytesWith(size_t fence_lines) {
  return kLeafBytes + fence_lines * kLineBytes;
}

// Entries with integer keys: | key | address of the record, or of the child |.
struct IntegerEntry {
  static constexpr int kPerLine = 3;
  static constexpr int kSlots = kPerLine * kSlotLines;  // 18

  uint64_t key = 0;
  uint64_t target = 0;

  friend bool operator==(const IntegerEntry&, const IntegerEntry&) = default;
};
static_assert(sizeof(IntegerEntry) == 16);

// The second word of line 0.
struct LeafSlots {
  static constexpr int kLevelShift = kMostSlots;
  static constexpr int kLastShift = kMostSlots + 6;
  static constexpr int kFenceLinesShift = kMostSlots + 12;
  static constexpr int kHighCopyShift = kMostSlots + 15;

  uint64_t bitmap = 0;
  uint8_t level = 0;        // below 64
  uint8_t last = 0;         // below 64
  uint8_t fence_lines = 0;  // at most kMostFenceLines
  uint8_t high_copy = 0;    // 0 or 1: the copy of the high fence that counts (tagged_leaf.h)

  constexpr uint64_t Pack() const {
    return bitmap | uint64_t{level & 63u} << kLevelShift | uint64_t{last & 63u} << kLastShift |
           uint64_t{fence_lines & 7u} << kFenceLinesShift | uint64_t{high_copy & 1u} << kHighCopyShift;
  }
  static constexpr LeafSlots Unpack(uint64_t word) {
    return {.bitmap = word & ((uint64_t{1} << kMostSlots) - 1),
            .level = static_cast<uint8_t>(word >> kLevelShift & 63),
            .last = static_cast<uint8_t>(word >> kLastShift & 63),
            .fence_lines = static_cast<uint8_t>(word >> kFenceLinesShift & 7),
            .high_copy = static_cast<uint8_t>(word >> kHighCopyShift & 1)};
  }
};

// Line 0.
struct LeafHead {
  static constexpr size_t kMostLines = kSlotLines;  // after line 0

  uint64_t state = kAbsentBit;
  uint64_t slots = 0;  // LeafSlots
  uint64_t low = 0;
  uint64_t high = 0;
  uint64_t right = 0;
  std::array<uint32_t, kMostLines> versions{};

  static constexpr size_t fence_lines() { return 0; }
  static constexpr void set_fence_lines(size_t /*lines*/) {}

  friend bool operator==(const LeafHead&, const LeafHead&) = default;
};
static_assert(sizeof(LeafHead) == kLineBytes);

// A private image of a leaf: what a READ of the whole leaf brought. It is not aligned to lines, because coroutines have
// images in their frames, which g++ 12 does not align to more than 16 bytes.
template <class HeadOfFormat>
struct BasicLeafImage {
  using Head = HeadOfFormat;
  struct Line {
    uint64_t version;
    std::byte entries[kLineBytes - kWordBytes];
  };

  Head head;
  std::array<Line, Head::kMostLines> lines;  // those of the fences first

  uint64_t state() const { return head.state; }
  rdma::GlobalAddress right() const { return rdma::GlobalAddress::FromBits(head.right); }
  uint8_t level() const { return LeafSlots::Unpack(head.slots).level; }
  bool Covers(uint64_t key) const requires std::same_as<Head, LeafHead> { return head.low <= key && key <= head.high; }

  // Number of lines after line 0.
  size_t line_count() const { return head.fence_lines() + kSlotLines; }
  size_t bytes() const { return (1 + line_count()) * kLineBytes; }

  // The slots that have entries of the index.
  template <class Entry>
  uint64_t used() const {
    return head.slots & ((uint64_t{1} << Entry::kSlots) - 1);
  }
  template <class Entry>
  int count() const {
    return std::popcount(used<Entry>());
  }
  template <class Entry>
  Entry entry(int slot) const {
    Entry entry;
    std::memcpy(&entry, Place<Entry>(*this, slot), sizeof(entry));
    return entry;
  }
  template <class Entry>
  void set_entry(int slot, const Entry& entry) {
    std::memcpy(Place<Entry>(*this, slot), &entry, sizeof(entry));
  }
  // Index of the line in `lines`.
  template <class Entry>
  size_t LineOf(int slot) const {
    return head.fence_lines() + static_cast<size_t>(slot / Entry::kPerLine);
  }

 private:
  template <class Entry, class Image>
  static auto* Place(Image& image, int slot) {
    return image.lines[image.template LineOf<Entry>(slot)].entries +
           static_cast<size_t>(slot % Entry::kPerLine) * sizeof(Entry);
  }
};
using LeafImage = BasicLeafImage<LeafHead>;
static_assert(sizeof(LeafImage) == kLeafBytes);

// The used slot whose entry has this key, or -1.
inline int FindSlot(const LeafImage& leaf, uint64_t key) {
  uint64_t equal = 0;
#pragma GCC unroll 18
  for (int slot = 0; slot < IntegerEntry::kSlots; ++slot) {
    equal |= uint64_t{leaf.entry<IntegerEntry>(slot).key == key} << slot;
  }
  equal &= leaf.used<IntegerEntry>();
  return equal == 0 ? -1 : std::countr_zero(equal);
}

enum class LeafLook : uint8_t {
  kWhole,   // the leaf as it was when the READ saw line 0
  kLocked,  // READ again; head.state names the holder, unless the line is busy
  kTorn,    // READ again: lines of several changes
  kDead,    // not part of the index: a stale address led here
};

// Judges an image from one READ of the whole leaf. For images that are not known to have the right number of fence
// lines: LeafChannel::Judge.
template <class Head>
LeafLook LookAtLeaf(const BasicLeafImage<Head>& leaf) {
  if (IsLocked(leaf.head.state)) return LeafLook::kLocked;
  if (IsAbsent(leaf.head.state)) return LeafLook::kDead;
  bool agree = true;
  for (size_t i = 0; i < leaf.line_count(); ++i) {
    // A busy line has the lock bit, and so do not agree.
    agree &= (leaf.lines[i].version & ~uint64_t{kVersionMask}) == kAbsentBit &&
             static_cast<uint32_t>(leaf.lines[i].version) == leaf.head.versions[i];
  }
  return agree ? LeafLook::kWhole : LeafLook::kTorn;
}

// Whether line 0 of this image proves the slot line with index `line` in `lines`; the other lines of the image are
// anything.
template <class Head>
bool ProvesLine(const BasicLeafImage<Head>& leaf, size_t line) {
  const uint64_t version = leaf.lines[line].version;
  return !IsLocked(leaf.head.state) && !IsAbsent(leaf.head.state) &&
         (version & ~uint64_t{kVersionMask}) == kAbsentBit &&
         static_cast<uint32_t>(version) == leaf.head.versions[line];
}

// Completes an image of line 0 and of one line that it proves, for a change that writes no other line (Replace): then
// it looks whole. The entries of the other lines stay what they were in memory, anything.
template <class Head>
void CompleteForLine(BasicLeafImage<Head>* leaf, size_t line) {
  for (size_t i = 0; i < leaf->line_count(); ++i) {
    if (i != line) leaf->lines[i].version = kAbsentBit | leaf->head.versions[i];
  }
}

// Reads a leaf by the owner's CPU. It moves words, not lines; but whoever changes line 0 changes its state word, or
// marks it busy first. So if the word is the same after the copy, line 0 was the same throughout.
//
// On a fabric that is not line_consistent, a WRITE of line 0 changes the state word last, and marks nothing. Then only
// an image of an unlocked leaf says anything: what a client writes, it has locked. With `locked_too` false a locked
// leaf is kLocked (LeafBlocks::Look says when).
//
// Otherwise a locked leaf can be read, too: until line 0 changes, the index has what it says. Lines may be newer than
// line 0 says; the slots that it counts have the same entries there, but one that is being replaced. They are not
// older. The image then looks whole, with the state word that the leaf had before the lock. So the owner's threads
// never wait for a client that holds a lock. (As with a single line, an entry may be of an insert that is not
// committed: in a right leaf that is not linked yet. Its record says that it is absent.)
//
// But a right leaf that is being absorbed is locked, and no longer in the index once the left one has changed. So a
// search that came to a locked leaf in another way than by the right link of the left sibling, which it has read, does
// not believe it. (In a B-link tree a leaf has lost its parent before it is absorbed.)
//
// A kept leaf (claim.h) is whole, too, but its image has the locked state word. Of what it says only the fences are
// right: they do not change while the leaf is kept, and its holder may have changed, or be writing, everything else.
//
// kLocked, kTorn: read again; a line is being written now.
template <class Head>
LeafLook ReadOwnLeaf(const std::byte* leaf, BasicLeafImage<Head>* image, size_t fence_lines = 0,
                     bool locked_too = true);

// Stores a leaf by the owner's CPU, in a block that is dead and that only the caller uses. The state word comes last.
template <class Head>
void StoreLeaf(const BasicLeafImage<Head>& image, std::byte* leaf);

}  // namespace gannet::index::shared_leaf
