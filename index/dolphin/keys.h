// The keys of Dolphin's leaves, for code that is written for all kinds of leaves and keys
// (shared_leaf/leaf/integer_keys.h). Readers see a leaf as Keys::Image; its changers as Keys::Leaf, which Keys::View
// turns into that.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "index/dolphin/byte_leaf.h"
#include "index/dolphin/inner_node.h"
#include "index/dolphin/leaf.h"
#include "index/shared_leaf/leaf/byte_keys.h"
#include "index/shared_leaf/leaf/integer_keys.h"

namespace gannet::index::dolphin {

struct IntegerKeys : shared_leaf::BasicIntegerKeys<LeafImage> {
  using Leaf = LeafImage;
  static constexpr int kSlots = kMostSlots;
  struct Schema {
    size_t key_lines = kDefaultKeyLines;

    static constexpr size_t fence_lines() { return 0; }
    // The lines that the shape of a leaf counts.
    size_t shape_lines() const { return key_lines; }
    size_t leaf_bytes() const { return LeafBytes(key_lines); }
    int slots() const { return static_cast<int>(key_lines) * kSlotsPerLine; }
  };

  // Inner nodes know a key, a low fence or a point by these bytes.
  static ByteKey ArtKey(Key key) { return ArtKeyOf(key); }
  static constexpr bool IsBelow(Point) { return false; }
  // Returns the key above `left` and up to `right` with the most zeros at its end: inner nodes need the fewest bytes
  // for it.
  static Key Border(Key left, Key right, uint8_t /*level*/, bool /*appended*/) {
    const int common_bits = std::countl_zero(left ^ right) / 8 * 8;
    return right & ~(UINT64_MAX >> 8 >> common_bits);
  }
  // Low fences of the leaves that a new index has.
  static std::vector<Key> FirstLows() { return {0, kMostRange, 2 * kMostRange, 3 * kMostRange}; }
  static const Image& View(const Leaf& leaf) { return leaf; }
  static int SlotOf(const Image& image, Key key) { return image.Find(key); }
  template <class Blocks>
  static LeafLook Look(const Blocks& blocks, const Schema& schema, uint64_t offset, Image* image) {
    return blocks.LookBy(image, [&](bool locked_too) {
      return ReadOwnLeaf(blocks.Memory(offset), image, schema.key_lines, locked_too);
    });
  }

  static void SetLow(Leaf* leaf, Key low) { leaf->head.low = low; }
  // After SetLow. nullopt: there is no right sibling.
  static void SetNextLow(Leaf* leaf, std::optional<Key> next_low) {
    leaf->head.high = next_low.has_value() ? *next_low - 1 : UINT64_MAX;
    GANNET_CHECK(leaf->HasRange(), "a leaf from %d to %d", leaf->head.low, leaf->head.high);
  }
};

struct ByteKeys : shared_leaf::ByteKeys {
  using Leaf = ByteLeafImage;
  struct Schema : shared_leaf::ByteKeys::Schema {
    using shared_leaf::ByteKeys::Schema::Schema;

    size_t shape_lines() const { return fence_lines(); }
    size_t leaf_bytes() const { return Leaf::BytesOf(Part::kWhole, fence_lines()); }
    static constexpr int slots() { return kSlots; }
  };

  static Key ArtKey(const Key& key) { return key; }
  static const Key& ArtKey(const Point& point) { return point.key; }
  static bool IsBelow(const Point& point) { return point.below; }
  static std::vector<Key> FirstLows() { return {kLeast}; }
  static Image View(const Leaf& leaf) { return leaf.Tagged(); }
  template <class Blocks>
  static LeafLook Look(const Blocks& blocks, const Schema& schema, uint64_t offset, Image* image) {
    Leaf leaf;
    const LeafLook look = blocks.LookBy(&leaf, [&](bool locked_too) {
      return ReadOwnLeaf(blocks.Memory(offset), &leaf, schema.fence_lines(), locked_too);
    });
    if (look == LeafLook::kWhole) *image = View(leaf);
    return look;
  }

  static void SetLow(Leaf* leaf, const Key& low) { leaf->SetFence(shared_leaf::Fence::kLow, low); }
  // Once in a draft: the second time would overwrite the copy that counts until the head is written.
  static void SetNextLow(Leaf* leaf, const std::optional<Key>& next_low) {
    leaf->SetFence(shared_leaf::Fence::kOtherHigh, next_low);
  }
};

// Writes a new leaf but for its state word, in the memory of a block that is dead and that only the caller uses.
// `next_low`: low fence of the leaf to its right, if there is one.
template <class Keys>
void StoreNewLeaf(const typename Keys::Schema& schema, std::byte* block, std::span<const typename Keys::Entry> entries,
                  const typename Keys::Key& low, const std::optional<typename Keys::Key>& next_low,
                  rdma::GlobalAddress right) {
  typename Keys::Leaf leaf{};
  leaf.SetShape(schema.shape_lines());
  Keys::SetLow(&leaf, low);
  Keys::SetNextLow(&leaf, next_low);
  leaf.head.right = right.bits();
  for (size_t i = 0; i < entries.size(); ++i) leaf.Put(static_cast<int>(i), entries[i]);
  StoreLeaf(leaf, block);
}

}  // namespace gannet::index::dolphin
