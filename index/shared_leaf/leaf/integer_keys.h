// IntegerKeys: what code for leaves of both formats needs to know about integer keys. ByteKeys (byte_keys.h) is the
// same for byte keys. Code that is written for both takes one of them as its parameter `Keys`.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "index/index.h"
#include "index/key.h"
#include "index/shared_leaf/leaf/leaf.h"
#include "index/shared_leaf/leaf/leaf_draft.h"

namespace gannet::index::shared_leaf {

// A leaf as it was READ, with the keys of its entries as far as they are known (Keys::EntryKeys).
template <class Image, class EntryKeys>
struct BasicLeafCopy {
  rdma::GlobalAddress address;
  Image image;
  [[no_unique_address]] EntryKeys keys{};

  Witness witness() const { return {address, image.state()}; }
};
template <class Keys>
using LeafCopyOf = BasicLeafCopy<typename Keys::Image, typename Keys::EntryKeys>;

// What does not depend on the format of the leaf.
template <class ImageOfLeaf>
struct BasicIntegerKeys {
  static constexpr KeyKind kKind = KeyKind::kInteger;
  // The keys are in records and children, and take READs of their own.
  static constexpr bool kKeysElsewhere = false;
  using Image = ImageOfLeaf;
  using Entry = IntegerEntry;
  using Key = uint64_t;
  // An entry and its key.
  using IndexEntry = IntegerEntry;
  // What a search looks for: the leaf that covers a key, or that covers the keys right below it.
  using Point = uint64_t;
  // A position in the order of keys, from which a scan goes on: the next key.
  using Cut = uint64_t;
  struct EntryKeys {};
  static void ForgetKeys(EntryKeys*) {}

  static Key KeyFrom(const index::Key& key) { return key.integer(); }
  static std::string ToString(Key key) { return absl::StrCat(key); }
  static constexpr Key kLeast = 0;
  static constexpr Key Greatest() { return UINT64_MAX; }
  // InvalidArgument: the key is too long for the index.
  template <class Schema>
  static Status CheckLength(const Schema&, const index::Key&) {
    return absl::OkStatus();
  }
  // Whether an entry is that of the key, which its record, or child, has.
  template <class Schema>
  static bool IsEntryOf(const Schema&, Key, const Entry&) {
    return true;
  }

  template <class Schema>
  static IndexEntry RecordEntry(const Schema&, Key key, rdma::GlobalAddress record) {
    return {key, record.bits()};
  }
  static IndexEntry ChildEntry(Key low, rdma::GlobalAddress child) { return {low, child.bits()}; }
  static const Key& KeyOf(const IndexEntry& entry) { return entry.key; }
  static const Entry& EntryOf(const IndexEntry& entry) { return entry; }
  static rdma::GlobalAddress TargetOf(const Entry& entry, rdma::NodeId /*owner*/) {
    return rdma::GlobalAddress::FromBits(entry.target);
  }

  // `slot` is in use.
  static bool Knows(const EntryKeys&, int /*slot*/) { return true; }
  static Key KeyAt(const Image& image, const EntryKeys&, int slot) { return image.template entry<Entry>(slot).key; }

  static Key LowOf(const Image& image) { return image.head.low; }
  static bool IsFirst(const Image& image) { return image.head.low == 0; }
  static bool IsLast(const Image& image) { return image.head.high == UINT64_MAX; }
  // The low fence of the right sibling. Not of the last leaf.
  static Key NextLow(const Image& image) { return image.head.high + 1; }
  static bool CoversKey(const Image& image, Key key) { return image.Covers(key); }

  static Point At(Key key) { return key; }
  static bool Covers(const Image& image, Point point) { return image.Covers(point); }
  // The leaf begins right of the point; ends left of it.
  static bool BeginsBehind(const Image& image, Point point) { return point < image.head.low; }
  static bool EndsBefore(const Image& image, Point point) { return point > image.head.high; }
  // The separator leads to the point, or to its left.
  static bool IsAtMost(Key separator, Point point) { return separator <= point; }
  // The share of the keys from `low` on, below `high`, that come before the point, if they are spread evenly.
  static double ShareBefore(Key low, Point point, Key high) {
    if (point <= low || high <= low) return 0;
    return std::min(1.0, static_cast<double>(point - low) / static_cast<double>(high - low));
  }

  // A scan's first position, and the one behind a key.
  static Cut Start(Key from, Key to, bool reverse) { return reverse ? to : from; }
  static Cut Behind(Key key, bool reverse) { return reverse ? key - 1 : key + 1; }
  // Nothing of [from, to] follows.
  static bool IsPast(Cut cut, Key from, Key to, bool reverse) { return reverse ? cut < from : cut > to; }
  // The leaf where the scan goes on.
  static Point PointOf(Cut cut, bool /*reverse*/) { return cut; }
  static Cut CutFrom(FewWords words) { return words[0]; }
  static void PutCut(Cut cut, FewWordsOut words) { words[0] = cut; }

  // Low fence of a right leaf that begins with `right`, when `left` is the last key of the left one. `appended`: keys
  // follow that are a little greater than `left`.
  static Key Border(Key left, Key right, uint8_t level, bool appended) {
    return appended && level == 0 ? left + 1 : right;
  }
};

// The keys of shared leaves.
struct IntegerKeys : BasicIntegerKeys<LeafImage> {
  using Head = LeafHead;
  using Draft = LeafDraft;
  static constexpr int kSlots = Entry::kSlots;
  // What all users of an index have to know about its keys.
  struct Schema {
    static constexpr size_t fence_lines() { return 0; }
  };

  // The used slot that has this key, or -1.
  static int SlotOf(const Image& image, Key key) { return FindSlot(image, key); }
  // Reads the leaf at this offset of the owner's memory (LeafBlocks::Look).
  template <class Blocks>
  static LeafLook Look(const Blocks& blocks, const Schema&, uint64_t offset, Image* image) {
    return blocks.Look(offset, image);
  }

  static void SetLow(Draft* draft, Key low) { draft->set_low(low); }
  // nullopt: there is no right sibling.
  static void SetNextLow(Draft* draft, std::optional<Key> next_low) {
    draft->set_high(next_low.has_value() ? *next_low - 1 : UINT64_MAX);
  }
};

using LeafCopy = LeafCopyOf<IntegerKeys>;

// The low fence of the right sibling, if there is one.
template <class Keys>
std::optional<typename Keys::Key> NextLowOf(const typename Keys::Image& image) {
  if (Keys::IsLast(image)) return std::nullopt;
  return Keys::NextLow(image);
}

}  // namespace gannet::index::shared_leaf
