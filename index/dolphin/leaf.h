// The leaf of Dolphin (MSST'24, III-A2 and III-C), for integer keys. byte_leaf.h has what is different with byte keys.
// Clients change single words of a leaf at once, under the shared side of a lock of three states, and whole lines under
// the exclusive side:
//
//   line 0, lock    | state | constant | holders | reverse | 32 bytes spare |   changed word by word
//   line 1, head    | number | shape | low | high | right | 24 bytes spare |
//   G key lines     | number | 7 key words |
//   G target lines  | number | 7 targets |
//
//   state    lock word (lock_word.h). Not locked, its bits 40 to 61 are the generation of the leaf: the low 22 bits of
//            its number. Locked, they name the holder of the exclusive side. Its version is raised by every change of
//            the set of keys. "absent" means that the leaf is dead: no longer, or not yet, part of the index.
//   constant stands where a record has its meta word, and is none: a stale address of a record that leads here finds no
//            key.
//   holders  bit n: node n is inside, on the shared side
//   reverse  a hint: the inner node that has the entry of the leaf (ReversePointer); 0: it was not told
//   number   of a line: the version that the last exclusive change of the leaf has published, marked with kNotAState.
//            Equal in all lines.
//   shape    G, the number of key lines
//   low      the leaf covers the keys from low to high, both included, and at most kMostRange of them
//   right    address of the right sibling, null if there is none; its low is high + 1
//   key word 0: the slot is free. key - low + 1: it has an entry, if its target is not 0. That and kReservedBit: an
//            insert has reserved it (the model calls this a claim). kGone: the entry was removed, and the slot is free
//            again after the next exclusive change.
//   target   address of the key's record, or its value; not 0
//
// The lock (the paper's has counts that change by FAA alone; a count has no name, so what a dead node leaves in it
// cannot be told from what a live one has there):
//
//   shared     FAA of the node's bit to `holders`, then a look at the leaf. The node is inside if the image is valid;
//              otherwise it takes the bit away again. It changes words, raises the state word if the set of keys may
//              have changed, and takes its bit away, all by one posting. One user at a time has the bit
//              (holder_book.h).
//   exclusive  CAS of the state word, which names the holder; then FAA of 0 on `holders`. If that finds 0, the holder
//              is alone: whoever comes later sees the lock behind its bit, and leaves again. The holder writes lines,
//              and releases by a CAS to the next version and the generation of the new number.
//
// An exclusive change that rewrites the leaf (leaf_draft.h) writes all lines with one new number. So an image whose
// lines agree, with a state word of the same generation, has no line from before the last exclusive change, and none
// from the middle of another. Within a generation a key word goes from free to reserved, to an entry, to removed, and
// its target is written while it is reserved. So a pair of words is never mixed, and what an image has was in the index
// at some moment of the READ.
//
// A key that an image lacks was absent at some moment of the READ, too. But the state word in the image may be of
// another moment. So for a witness an FAA of 0 on the state word goes before the READ: an insert that the image
// misses is published after that, and raises the word after that.
//
// docs/models/dolphin_lock.pml is a model of all this; each rule is needed there. Nothing in an image is trusted: a
// client that does not keep the rules can write anything into a leaf.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/cache_line.h"
#include "index/lock_word.h"
#include "index/shared_leaf/leaf/leaf.h"
#include "index/witness_word.h"
#include "rdma/global_address.h"
#include "rdma/versioned.h"

namespace gannet::index::dolphin {

using shared_leaf::LeafLook;

inline constexpr int kSlotsPerLine = 7;
inline constexpr size_t kMostKeyLines = 9;  // 63 slots: a word has a bit for each
inline constexpr int kMostSlots = static_cast<int>(kMostKeyLines) * kSlotsPerLine;
inline constexpr size_t kDefaultKeyLines = 3;
// Bytes of a leaf, and of the part of it without targets.
constexpr size_t LeafBytes(size_t key_lines) {
  return (2 + 2 * key_lines) * kLineBytes;
}
constexpr size_t KeyPartBytes(size_t key_lines) {
  return (2 + key_lines) * kLineBytes;
}

// A new index has leaves of this many keys, and none becomes larger: key words need two values beyond the keys.
inline constexpr uint64_t kMostRange = uint64_t{1} << 62;
inline constexpr uint64_t kReservedBit = uint64_t{1} << 63;
inline constexpr uint64_t kGone = ~uint64_t{0};
// The slot has an entry if its target is not 0, too.
constexpr bool IsKeyWord(uint64_t word) {
  return word != 0 && (word & kReservedBit) == 0;
}
constexpr bool IsReservedWord(uint64_t word) {
  return (word & kReservedBit) != 0 && word != kGone;
}

// No record has such a long key.
inline constexpr uint64_t kNoRecord = ~uint64_t{0};

// The generation of a leaf with this number, at its place in an unlocked state word.
constexpr uint64_t GenerationOf(uint64_t number) {
  return number << 40 & kStructureBits;
}
// The unlocked word with the version of `state`, in a leaf with this number.
constexpr uint64_t UnlockedState(uint64_t state, uint64_t number) {
  return VersionOf(state) | GenerationOf(number);
}
// The unlocked state word that publishes this version, by an exclusive change that gives the lines its number.
constexpr uint64_t StateOfNumber(uint64_t version) {
  return UnlockedState(version, version);
}
constexpr bool IsGenerationOf(uint64_t state, uint64_t number) {
  return (state & kStructureBits) == GenerationOf(number);
}
inline constexpr size_t kMostNodes = 64;
constexpr uint64_t HolderBit(rdma::NodeId node) {
  return uint64_t{1} << (node & 63);
}

struct LockLine {
  uint64_t state = kAbsentBit;
  uint64_t constant = kNoRecord;
  uint64_t holders = 0;
  uint64_t reverse = 0;
  std::array<uint64_t, 4> spare{};
};
static_assert(sizeof(LockLine) == kLineBytes);

struct HeadLine {
  uint64_t number = kAbsentBit;
  uint64_t shape = 0;
  uint64_t low = 0;
  uint64_t high = 0;
  uint64_t right = 0;
  std::array<uint64_t, 3> spare{};
};
static_assert(sizeof(HeadLine) == kLineBytes);

struct SlotLine {
  uint64_t number = 0;
  std::array<uint64_t, kSlotsPerLine> words{};
};
static_assert(sizeof(SlotLine) == kLineBytes);

// Places of the words that are changed one by one.
inline constexpr size_t kHoldersOffset = offsetof(LockLine, holders);
inline constexpr size_t kReverseOffset = offsetof(LockLine, reverse);
constexpr size_t KeyOffset(int slot) {
  const auto line = static_cast<size_t>(slot / kSlotsPerLine);
  return (2 + line) * kLineBytes + static_cast<size_t>(1 + slot % kSlotsPerLine) * kWordBytes;
}
constexpr size_t TargetOffset(size_t key_lines, int slot) {
  return KeyOffset(slot) + key_lines * kLineBytes;
}

// The part of a leaf that was READ: its lock and head, all but its targets, or the whole of it. A leaf of byte keys has
// no targets.
enum class Part : uint8_t { kHead, kKeys, kWhole };

// A private image of a leaf: what images of leaves of integer keys and of byte keys have in common.
template <size_t kMostLines>
struct BasicLeafImage {
  LockLine lock;
  HeadLine head;
  std::array<SlotLine, kMostLines> lines;

  uint64_t state() const { return lock.state; }
  static constexpr uint8_t level() { return 0; }
  rdma::GlobalAddress right() const { return rdma::GlobalAddress::FromBits(head.right); }
};

// The first slot, from `from` on, that has this key word; -1: none has. 0: a free slot.
template <class Leaf>
int SlotWith(const Leaf& leaf, uint64_t word, int from = 0) {
  for (int slot = from; slot < leaf.slots(); ++slot) {
    if (leaf.key_word(slot) == word) return slot;
  }
  return -1;
}

// The image of a leaf of integer keys. `key_lines` of every leaf of an index are known (shape says so, too, for walks
// from outside), so a reader sets them before it looks at anything else.
struct LeafImage : BasicLeafImage<2 * kMostKeyLines> {
  static constexpr size_t kMostShapeLines = kMostKeyLines;
  // Bytes of a part of a leaf with this number of key lines.
  static constexpr size_t BytesOf(Part part, size_t key_lines) {
    if (part == Part::kHead) return 2 * kLineBytes;
    return part == Part::kKeys ? KeyPartBytes(key_lines) : LeafBytes(key_lines);
  }
  // Sets the number of key lines.
  void SetShape(size_t key_lines) { head.shape = key_lines; }
  // Number of lines after the head in a part.
  size_t LinesIn(Part part) const {
    if (part == Part::kHead) return 0;
    return key_lines() * (part == Part::kKeys ? 1 : 2);
  }
  bool HasRange() const { return head.low <= head.high && head.high - head.low < kMostRange; }

  size_t key_lines() const { return head.shape; }
  int slots() const { return static_cast<int>(key_lines()) * kSlotsPerLine; }
  size_t bytes() const { return LeafBytes(key_lines()); }
  bool Covers(uint64_t key) const { return head.low <= key && key <= head.high; }
  bool is_last() const { return head.high == UINT64_MAX; }

  uint64_t key_word(int slot) const { return lines[LineOf(slot)].words[slot % kSlotsPerLine]; }
  void set_key_word(int slot, uint64_t word) { lines[LineOf(slot)].words[slot % kSlotsPerLine] = word; }
  uint64_t target(int slot) const { return lines[key_lines() + LineOf(slot)].words[slot % kSlotsPerLine]; }
  void set_target(int slot, uint64_t to) { lines[key_lines() + LineOf(slot)].words[slot % kSlotsPerLine] = to; }

  // Places of both words of a slot.
  size_t key_offset(int slot) const { return KeyOffset(slot); }
  size_t target_offset(int slot) const { return TargetOffset(key_lines(), slot); }
  bool HasEntryWord(int slot) const { return IsKeyWord(key_word(slot)); }
  bool IsReserved(int slot) const { return IsReservedWord(key_word(slot)); }

  uint64_t WordOf(uint64_t key) const { return key - head.low + 1; }
  uint64_t KeyOf(uint64_t word) const { return head.low + word - 1; }
  // The keys of slots with entries, for images with targets, as bits.
  uint64_t used() const;
  int count() const { return std::popcount(used()); }
  // Code for all kinds of leaves names the type of the entry (BasicIntegerKeys).
  template <class Entry>
  uint64_t used() const {
    return used();
  }
  template <class Entry>
  int count() const {
    return count();
  }
  template <class Entry>
  Entry entry(int slot) const {
    return {KeyOf(key_word(slot)), target(slot)};
  }
  // True if the leaf can have this entry.
  bool MayHave(const shared_leaf::IntegerEntry& entry) const { return Covers(entry.key) && entry.target != 0; }
  void Put(int slot, const shared_leaf::IntegerEntry& entry) {
    set_key_word(slot, WordOf(entry.key));
    set_target(slot, entry.target);
  }
  void Clear(int slot) {
    set_key_word(slot, 0);
    set_target(slot, 0);
  }
  // The first slot whose key word is free; -1: none is.
  int FreeSlot(int from = 0) const { return SlotWith(*this, 0, from); }
  // The slot that has this key word; -1: none has.
  int SlotOf(uint64_t word) const;
  // The slot of an entry of the key, for images with targets; -1: there is none.
  int Find(uint64_t key) const {
    const int slot = Covers(key) ? SlotOf(WordOf(key)) : -1;
    return slot >= 0 && target(slot) != 0 ? slot : -1;
  }

 private:
  static size_t LineOf(int slot) { return static_cast<size_t>(slot / kSlotsPerLine); }
};
static_assert(sizeof(LeafImage) == LeafBytes(kMostKeyLines));

// Judges an image of this part of a leaf: kWhole if it is valid (above). First it sets the lines of its shape, which
// are known: key lines, or fence lines of byte keys. Leaf: LeafImage or ByteLeafImage.
template <class Leaf>
LeafLook LookAtLeaf(Leaf* leaf, size_t shape_lines, Part part);
// True if all lines of the image have one number, which is of this generation, and the fences are in order. For the
// holder of the exclusive side, which sees the state word locked.
template <class Leaf>
bool IsOfOneNumber(const Leaf& leaf, uint64_t generation_of, Part part);

// Reads a leaf by the owner's CPU. It reads the state word, the lines, and the state word again; if that is the same,
// no change of the set of keys fell in between. A leaf whose exclusive side somebody has, or wants, is whole, too, if
// `locked_too` and its lines agree: none was written since, but words of entries that are being inserted. Its image has
// the state word without the lock. `locked_too` is false where a WRITE of a line may be seen in parts: a line with the
// new number may have old words then.
template <class Leaf>
LeafLook ReadOwnLeaf(const std::byte* leaf, Leaf* image, size_t shape_lines, bool locked_too);

// Makes the first leaf of a block possible, which is dead: nobody is inside (shared_leaf::LeafFormat).
void BeginBlock(std::byte* block);
// Stores a leaf but for its lock line, by the owner's CPU, in a block that is dead and that only the caller uses. Its
// lines get the number that the block's next state word publishes (NextLife).
template <class Leaf>
void StoreLeaf(Leaf image, std::byte* block);
// The state word with which the leaf lives that was stored in a block with this one.
constexpr uint64_t NextLife(uint64_t dead) {
  return StateOfNumber(VersionOf(NextState(dead, false)));
}

}  // namespace gannet::index::dolphin
