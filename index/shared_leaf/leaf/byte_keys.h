// ByteKeys: what code for leaves of both formats needs to know about byte keys (integer_keys.h).
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/keyed_hash.h"
#include "base/status.h"
#include "index/index.h"
#include "index/key.h"
#include "index/shared_leaf/leaf/integer_keys.h"
#include "index/shared_leaf/leaf/leaf_draft.h"
#include "index/shared_leaf/leaf/tagged_leaf.h"

namespace gannet::index::shared_leaf {

// Bytes with which both begin.
constexpr size_t CommonBytes(std::string_view a, std::string_view b) {
  size_t common = 0;
  while (common < a.size() && common < b.size() && a[common] == b[common]) ++common;
  return common;
}

// The first 8 bytes, in big-endian order, padded with zeros.
uint64_t NumberFrom(std::string_view bytes);

struct ByteKeys {
  static constexpr KeyKind kKind = KeyKind::kBytes;
  static constexpr bool kKeysElsewhere = true;
  using Head = TaggedHead;
  using Image = TaggedImage;
  using Draft = TaggedDraft;
  using Entry = TaggedEntry;
  static constexpr int kSlots = Entry::kSlots;
  using Key = ByteKey;
  struct IndexEntry {
    ByteKey key;
    TaggedEntry entry;
  };
  // The leaf that covers the key; or, with `below`, the keys right below it.
  struct Point {
    ByteKey key;
    bool below = false;
  };
  // A place between keys: right before a key, or right after it. A forward scan goes on with the keys above, a reverse
  // scan with those below.
  struct Cut {
    ByteKey key;
    bool after = false;
    friend bool operator==(const Cut&, const Cut&) = default;
    friend std::strong_ordering operator<=>(const Cut&, const Cut&) = default;  // NOLINT: the generated code's 0
  };
  // Keys of used slots that were read.
  struct EntryKeys {
    uint64_t known = 0;
    // Used only in an inner node: entries that certainly lead to no child of it.
    uint64_t stale = 0;
    std::array<ByteKey, Entry::kSlots> of;

    EntryKeys() = default;
    EntryKeys(const EntryKeys& other) { *this = other; }
    // Copies only those that are known.
    EntryKeys& operator=(const EntryKeys& other) {
      known = other.known;
      stale = other.stale;
      for (uint64_t left = known; left != 0; left &= left - 1) {
        const auto slot = static_cast<size_t>(std::countr_zero(left));
        of[slot] = other.of[slot];
      }
      return *this;
    }
  };
  static void ForgetKeys(EntryKeys* keys) { keys->known = keys->stale = 0; }
  struct Schema {
    Schema(const KeyedHash::Seed& seed, size_t max_bytes) : hash(seed), max_key_bytes(max_bytes) {}

    size_t fence_lines() const { return FenceLinesFor(max_key_bytes); }
    uint64_t TagOf(const ByteKey& key) const { return hash(key.view()) >> 48; }

    KeyedHash hash;
    size_t max_key_bytes;
  };

  static Key KeyFrom(const index::Key& key) { return ByteKey(key.bytes()); }
  static std::string ToString(const Key& key) { return index::Key(key.view()).ToString(); }
  static inline const Key kLeast{};
  static Key Greatest() { return ByteKey(std::string(kShortKeyBytes, '\xff')); }
  static Status CheckLength(const Schema& schema, const index::Key& key);
  static bool IsEntryOf(const Schema& schema, const Key& key, const Entry& entry) {
    return entry.tag() == schema.TagOf(key);
  }

  static IndexEntry RecordEntry(const Schema& schema, const Key& key, rdma::GlobalAddress record) {
    return {key, TaggedEntry::Of(schema.TagOf(key), record.offset())};
  }
  static IndexEntry ChildEntry(const Key& low, rdma::GlobalAddress child) {
    return {low, TaggedEntry::Of(0, child.offset())};
  }
  static const Key& KeyOf(const IndexEntry& entry) { return entry.key; }
  static const Entry& EntryOf(const IndexEntry& entry) { return entry.entry; }
  static rdma::GlobalAddress TargetOf(const Entry& entry, rdma::NodeId owner) { return {owner, entry.offset()}; }

  static bool Knows(const EntryKeys& keys, int slot) { return (keys.known >> slot & 1) != 0; }
  static const Key& KeyAt(const Image&, const EntryKeys& keys, int slot) { return keys.of[static_cast<size_t>(slot)]; }

  template <class Blocks>
  static LeafLook Look(const Blocks& blocks, const Schema&, uint64_t offset, Image* image) {
    return blocks.Look(offset, image);
  }

  static Key LowOf(const Image& image) { return ByteKey(FenceView(image, Fence::kLow).key()); }
  static bool IsFirst(const Image& image) { return FenceView(image, Fence::kLow).key().empty(); }
  static bool IsLast(const Image& image) { return FenceView(image, Fence::kHigh).is_none(); }
  static Key NextLow(const Image& image) { return ByteKey(FenceView(image, Fence::kHigh).key()); }
  static bool CoversKey(const Image& image, const Key& key) { return !Begins(image, key) && !Ends(image, key); }

  static Point At(const Key& key) { return {key}; }
  static bool Covers(const Image& image, const Point& point) {
    return !BeginsBehind(image, point) && !EndsBefore(image, point);
  }
  static bool BeginsBehind(const Image& image, const Point& point) {
    const FenceView low(image, Fence::kLow);
    return point.below ? low.key() >= point.key.view() : low.key() > point.key.view();
  }
  static bool EndsBefore(const Image& image, const Point& point) {
    const FenceView high(image, Fence::kHigh);
    if (high.is_none()) return false;
    return point.below ? high.key() < point.key.view() : high.key() <= point.key.view();
  }
  static bool IsAtMost(const Key& separator, const Point& point) {
    return point.below ? separator.view() < point.key.view() : separator.view() <= point.key.view();
  }
  // By the eight bytes behind those with which all keys of the range begin.
  static double ShareBefore(const Key& low, const Point& point, const Key& high);

  static Cut Start(const Key& from, const Key& to, bool reverse) { return reverse ? Cut{to, true} : Cut{from, false}; }
  static Cut Behind(const Key& key, bool reverse) { return {key, !reverse}; }
  static bool IsPast(const Cut& cut, const Key& from, const Key& to, bool reverse) {
    return reverse ? cut <= Cut{from, false} : cut >= Cut{to, true};
  }
  static Point PointOf(const Cut& cut, bool reverse) { return {cut.key, reverse && !cut.after}; }
  // The key in big-endian order, padded with zeros; then its length, twice, and one more after it.
  static Cut CutFrom(FewWords words);
  static void PutCut(const Cut& cut, FewWordsOut words);

  // The border between two nodes: between leaves the shortest key that separates them.
  static Key Border(const Key& left, const Key& right, uint8_t level, bool /*appended*/) {
    if (level > 0) return right;
    return ByteKey(right.view().substr(0, CommonBytes(left.view(), right.view()) + 1));
  }
  static void SetLow(Draft* draft, const Key& low) { draft->set_low(low); }
  static void SetNextLow(Draft* draft, const std::optional<Key>& next_low) { draft->set_high(next_low); }

 private:
  static bool Begins(const Image& image, const Key& key) { return FenceView(image, Fence::kLow).key() > key.view(); }
  static bool Ends(const Image& image, const Key& key) {
    const FenceView high(image, Fence::kHigh);
    return !high.is_none() && high.key() <= key.view();
  }
};

using TaggedCopy = LeafCopyOf<ByteKeys>;

}  // namespace gannet::index::shared_leaf
