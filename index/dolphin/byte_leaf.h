// The leaf of Dolphin for byte keys. The rules are those of leaf.h; this header has what is different.
//
//   line 0, lock    | state | constant | holders | reverse | 32 bytes spare |   changed word by word
//   line 1, head    | number | shape | 16 bytes spare | right | 24 bytes spare |
//   F fence lines   | number | 56 bytes of fences |          F: 1 to 4, one number for the whole index
//   6 entry lines   | number | 7 entries |
//
//   shape    F, and which copy of the high fence counts, packed as shared_leaf::LeafSlots
//   fences   three at equal distances: low, and two copies of high (shared_leaf/leaf/tagged_leaf.h)
//   entry    0: the slot is free. | tag 16 | offset 48 |: of the key's record, which has the key (TaggedEntry). kGone:
//            the entry was removed, and the slot is free again after the next exclusive change. No record has such an
//            offset, so no entry is 0 or kGone.
//
// An entry is one word, so one CAS inserts it, and nothing is reserved: [CAS of a free slot; FAA of the state word; FAA
// of the bit] is one posting. If the CAS finds another entry, the rest does no harm: the state word is raised although
// this client has changed nothing, and readers with the old word look again. The insert then starts over with a new
// image, which has the other entry. The model (dolphin_lock.pml, ONE_WORD) has this posting.
//
// Two entries of one leaf may have the same tag. So an insert that finds its key's tag READs the keys of those records,
// while it is inside. A record that an entry of its image leads to keeps its key for as long as the client is inside
// the epoch, also if the entry is removed or replaced meanwhile. Of two inserts of one key, one meets the other, as in
// leaf.h: each takes the lowest free slot of its image, and within a generation no slot becomes free. So the later one
// either has the other's entry in its image, or its CAS finds the slot in use.
//
// The high fence. An exclusive change that moves it writes the new fence over the copy that does not count, with the
// number of the change, then the head, which turns the bit, sets the right link, and so commits. A split writes its
// entry lines after that, an absorb before.
//   - A reader believes an image only if the head and all other lines have one number, and the state word its
//     generation. Before the head is written, fence lines have the new number and the head the old one; afterwards
//     entry lines have the old one, until they are written, or the state word is locked. So what is read has the bit
//     and the fences of one change. Nothing else depends on the copies: to a reader they are lines like any other, for
//     which the model's rule is that every exclusive change rewrites all of them (KEEP_LINES).
//   - The repair reads the fences by the bit of the head. If the head is old, the copy that counts has the same bytes
//     as before, whatever part of the fence lines was written. If it is new, all of them were, because they are written
//     first. That is what the second copy is for.
//   - The posting may be repeated: its content stays the same, and the draft turns the bit once.
//
// A valid image is translated into one of shared_leaf (Tagged). All code that reads leaves of byte keys takes that.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "index/dolphin/leaf.h"
#include "index/shared_leaf/leaf/tagged_leaf.h"

namespace gannet::index::dolphin {

using shared_leaf::LeafSlots;
using shared_leaf::TaggedEntry;
using shared_leaf::TaggedImage;

inline constexpr size_t kEntryLines = shared_leaf::kSlotLines;
static_assert(TaggedEntry::kPerLine == kSlotsPerLine && TaggedEntry::kSlots == kEntryLines * kSlotsPerLine);

// The image of a leaf of byte keys. Its key words are its entries.
struct ByteLeafImage : BasicLeafImage<shared_leaf::kMostFenceLines + kEntryLines> {
  static constexpr size_t kMostShapeLines = shared_leaf::kMostFenceLines;
  // The head has the fences. There is no other part without targets.
  static constexpr size_t BytesOf(Part part, size_t fence_lines) {
    return (2 + fence_lines + (part == Part::kHead ? 0 : kEntryLines)) * kLineBytes;
  }
  // Sets the number of fence lines; the copy of the high fence stays.
  void SetShape(size_t fence_lines) {
    head.shape = LeafSlots{.fence_lines = static_cast<uint8_t>(fence_lines), .high_copy = high_copy()}.Pack();
  }
  size_t LinesIn(Part part) const { return fence_lines() + (part == Part::kHead ? 0 : kEntryLines); }
  // Fences are not compared here. Those that a client has made up cover no key, or lead to the left.
  static constexpr bool HasRange() { return true; }

  size_t fence_lines() const { return LeafSlots::Unpack(head.shape).fence_lines; }
  uint8_t high_copy() const { return LeafSlots::Unpack(head.shape).high_copy; }
  static constexpr int slots() { return TaggedEntry::kSlots; }
  size_t bytes() const { return BytesOf(Part::kWhole, fence_lines()); }

  uint64_t key_word(int slot) const { return lines[LineOf(slot)].words[static_cast<size_t>(slot % kSlotsPerLine)]; }
  size_t key_offset(int slot) const { return KeyOffset(slot) + fence_lines() * kLineBytes; }
  bool HasEntryWord(int slot) const { return key_word(slot) != 0 && key_word(slot) != kGone; }
  static constexpr bool IsReserved(int /*slot*/) { return false; }
  // The slots that have entries, as bits.
  uint64_t used() const {
    uint64_t used = 0;
    int slot = 0;
    for (size_t line = fence_lines(); slot < slots(); ++line) {
      for (const uint64_t word : lines[line].words) used |= uint64_t{word != 0 && word != kGone} << slot++;
    }
    return used;
  }
  int count() const { return std::popcount(used()); }
  template <class Entry>
  Entry entry(int slot) const {
    return {key_word(slot)};
  }
  bool MayHave(const TaggedEntry& entry) const { return entry.bits != 0 && entry.bits != kGone; }
  void Put(int slot, const TaggedEntry& entry) {
    lines[LineOf(slot)].words[static_cast<size_t>(slot % kSlotsPerLine)] = entry.bits;
  }
  void Clear(int slot) { Put(slot, {}); }
  int FreeSlot(int from = 0) const { return SlotWith(*this, 0, from); }

  // The same leaf as an image of shared_leaf, of which only the versions of lines mean nothing.
  TaggedImage Tagged() const {
    TaggedImage tagged;
    tagged.head = {.state = lock.state, .slots = head.shape | used(), .right = head.right};
    static_assert(sizeof(tagged.lines) == sizeof(lines));
    std::memcpy(static_cast<void*>(tagged.lines.data()), lines.data(), LinesIn(Part::kWhole) * kLineBytes);
    return tagged;
  }
  // Writes a fence. kOtherHigh: that becomes the copy that counts.
  void SetFence(shared_leaf::Fence fence, const std::optional<shared_leaf::ByteKey>& key) {
    TaggedImage tagged = Tagged();
    shared_leaf::StoreFence(&tagged, fence, key);
    std::memcpy(static_cast<void*>(lines.data()), tagged.lines.data(), fence_lines() * kLineBytes);
    if (fence != shared_leaf::Fence::kOtherHigh) return;
    LeafSlots shape = LeafSlots::Unpack(head.shape);
    shape.high_copy ^= 1;
    head.shape = shape.Pack();
  }

 private:
  size_t LineOf(int slot) const { return fence_lines() + static_cast<size_t>(slot / kSlotsPerLine); }
};
static_assert(sizeof(ByteLeafImage) == ByteLeafImage::BytesOf(Part::kWhole, shared_leaf::kMostFenceLines));

}  // namespace gannet::index::dolphin
