// The copy of a leaf in a frame: | grant | line 0 of the leaf | the entries of its other lines |. The versions of these
// lines are in line 0, too, so they are left out. The grant tells how long the copy is good without a verb
// (shared_leaf/claim/claim.h); none: it is a hint. The copy of a kept leaf has the state word that the leaf would have
// if it were not locked. Its lines that the owner does not have keep the versions that they had.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <optional>

#include "index/dex/cache/frames.h"
#include "index/shared_leaf/claim/claim_holder.h"
#include "index/shared_leaf/leaf/byte_keys.h"
#include "index/shared_leaf/leaf/integer_keys.h"
#include "rdma/fabric.h"

namespace gannet::index::dex {

template <class Keys>
class LeafBody {
 public:
  using LeafCopy = shared_leaf::LeafCopyOf<Keys>;
  using Image = typename Keys::Image;
  using Entry = typename Keys::Entry;
  using Key = typename Keys::Key;

  static FrameSize SizeFor(const Image& leaf) {
    const size_t bytes = sizeof(FrameHead) + LineAt(1 + leaf.line_count());
    if (bytes <= BytesOf(FrameSize::k384)) return FrameSize::k384;
    return bytes <= BytesOf(FrameSize::k512) ? FrameSize::k512 : FrameSize::k768;
  }

  static void Store(const LatchedFrame& frame, const Image& leaf, shared_leaf::Grant grant) {
    std::byte* const body = frame.body();
    StoreGrant(body, grant);
    StoreWords(body + LineAt(0), &leaf.head, kHeadWords);
    for (size_t line = 0; line < leaf.line_count(); ++line) {
      StoreWords(body + LineAt(1 + line), leaf.lines[line].entries, kBytesPerLine / kWordBytes);
    }
  }

  // Loads the whole leaf from a body. What it loads is right if the frame is unchanged then.
  static void Load(const std::byte* body, Image* leaf) {
    LoadWords(body + LineAt(0), &leaf->head, kHeadWords);
    for (size_t line = 0; line < leaf->line_count(); ++line) {
      leaf->lines[line].version = kAbsentBit | leaf->head.versions[line];
      LoadWords(body + LineAt(1 + line), leaf->lines[line].entries, kBytesPerLine / kWordBytes);
    }
  }

  // Copies of leaves of integer keys are searched where they are, and those of kept leaves are changed there.
  static bool Covers(const std::byte* body, const Key& key) requires(!Keys::kKeysElsewhere) {
    return Meets(body, key, key);
  }
  // The leaf may have keys from `from` to `to`.
  static bool Meets(const std::byte* body, const Key& from, const Key& to) requires(!Keys::kKeysElsewhere) {
    return LoadWord(body + LineAt(0) + offsetof(Head, low)) <= to &&
           from <= LoadWord(body + LineAt(0) + offsetof(Head, high));
  }
  // The slot that has the key, or -1.
  static int FindSlot(const std::byte* body, const Key& key) requires(!Keys::kKeysElsewhere) {
    for (uint64_t used = UsedIn(body); used != 0; used &= used - 1) {
      const int slot = std::countr_zero(used);
      if (LoadWord(EntryAt(body, slot)) == key) return slot;
    }
    return -1;
  }
  // A slot that is not used, or -1.
  static int FreeSlot(const std::byte* body) {
    const uint64_t free = ~UsedIn(body) & kAllSlots;
    return free == 0 ? -1 : std::countr_zero(free);
  }
  static uint64_t TargetAt(const std::byte* body, int slot) requires(!Keys::kKeysElsewhere) {
    return LoadWord(EntryAt(body, slot) + kWordBytes);
  }
  // These note in the grant which lines have changed.
  static void SetEntry(std::byte* body, int slot, const Entry& entry) {
    StoreWords(const_cast<std::byte*>(EntryAt(body, slot)), &entry, sizeof(Entry) / kWordBytes);
    NoteDirty(body, 1 | 2u << (slot / Entry::kPerLine));
  }
  static void SetUsed(std::byte* body, int slot, bool used) {
    std::byte* const word = body + LineAt(0) + offsetof(Head, slots);
    const uint64_t bit = uint64_t{1} << slot;
    StoreWord(word, used ? LoadWord(word) | bit : LoadWord(word) & ~bit);
    NoteDirty(body, 1);
  }

  // Stores the lines that a WRITE brings to the leaf at `leaf`.
  static void Apply(const LatchedFrame& frame, rdma::GlobalAddress leaf, const rdma::Operation& write) {
    const size_t lines = 1 + Keys::Head::kMostLines;
    const size_t first = (write.remote.offset() - leaf.offset()) / kLineBytes;
    for (size_t i = 0; i < write.size / kLineBytes && first + i < lines; ++i) {
      const std::byte* const from = static_cast<const std::byte*>(write.local) + i * kLineBytes;
      if (first + i == 0) {
        StoreWords(frame.body() + LineAt(0), from, kHeadWords);
      } else {
        StoreWords(frame.body() + LineAt(first + i), from + kWordBytes, kBytesPerLine / kWordBytes);
      }
    }
  }

  static uint64_t StateOf(const std::byte* body) { return LoadWord(body + LineAt(0)); }
  static shared_leaf::Grant GrantOf(const std::byte* body) { return shared_leaf::Grant(LoadWord(body)); }
  static void StoreGrant(std::byte* body, shared_leaf::Grant grant) { StoreWord(body, grant.bits()); }

 private:
  using Head = typename Keys::Head;
  static constexpr uint64_t kAllSlots = (uint64_t{1} << Entry::kSlots) - 1;
  static uint64_t UsedIn(const std::byte* body) {
    return LoadWord(body + LineAt(0) + offsetof(Head, slots)) & kAllSlots;
  }
  // The leaf has no lines of fences.
  static const std::byte* EntryAt(const std::byte* body, int slot) {
    return body + LineAt(1 + static_cast<size_t>(slot / Entry::kPerLine)) +
           static_cast<size_t>(slot % Entry::kPerLine) * sizeof(Entry);
  }
  static void NoteDirty(std::byte* body, uint32_t lines) {
    const shared_leaf::Grant grant = GrantOf(body);
    StoreGrant(body, shared_leaf::Grant::Kept(grant.lease(), grant.dirty() | lines));
  }

  static constexpr size_t kHeadWords = kLineBytes / kWordBytes;
  static constexpr size_t kBytesPerLine = static_cast<size_t>(Entry::kPerLine) * sizeof(Entry);
  static_assert(kBytesPerLine % kWordBytes == 0);
  // Offset of a line in the body.
  static constexpr size_t LineAt(size_t line) {
    return line == 0 ? kWordBytes : kWordBytes + kLineBytes + (line - 1) * kBytesPerLine;
  }
  static_assert(sizeof(FrameHead) + LineAt(1 + Keys::Head::kMostLines) <= BytesOf(FrameSize::k768));

  static void StoreWords(std::byte* to, const void* from, size_t words) {
    for (size_t i = 0; i < words; ++i) {
      uint64_t word;
      std::memcpy(&word, static_cast<const std::byte*>(from) + i * kWordBytes, kWordBytes);
      StoreWord(to + i * kWordBytes, word);
    }
  }
  static void LoadWords(const std::byte* from, void* to, size_t words) {
    for (size_t i = 0; i < words; ++i) {
      const uint64_t word = LoadWord(from + i * kWordBytes);
      std::memcpy(static_cast<std::byte*>(to) + i * kWordBytes, &word, kWordBytes);
    }
  }
};

}  // namespace gannet::index::dex
