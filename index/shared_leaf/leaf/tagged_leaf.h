// The shared leaf of byte keys. The rules are those of leaf.h; this header has what is different.
//
//   line 0            | state | slots | right | versions of the lines that follow, 32 bits each |
//   lines 1 to F      | version | 56 bytes of fences |            F: 1 to 4, one number for the whole index
//   lines F+1 to F+6  | version | seven entries |
//
// An entry is one word, however long its key is: | tag 16 | offset 48 |. In a leaf the offset is that of a
// record in the owner's memory, and the tag is part of the key's hash. The record holds the key (record_header.h). A
// tag that matches is decided by the record's key; two keys of one leaf may have the same tag. In an inner node the
// offset is that of a child, whose low fence is the separator, and the tag is 0.
//
// The keys of a whole image. A record stays as long as an entry leads to it, and then for a grace period, and its key
// never changes. So keys that were read from the records of a whole image, by a reader inside the epoch, are its keys.
// A child's low fence never changes either, as long as the child lives; and a merge takes a child's entry out of the
// parent before the child dies. So the children of a whole image of an inner node are alive, unless the node has
// changed since, or the entry was stale already (blink.h). A client that then takes the node's lock, which fails if the
// node has changed, knows the keys for sure.
//
// Fences. The leaf covers the keys from low up to high, without high. The bytes of lines 1 to F have three fences at
// equal distances: low, and two copies of high. Each is one byte of length, then the key; the length 255 says that
// there is no high fence. A bit in the slots word tells which copy counts. A change of the high fence writes the other
// copy, then line 0, which turns the bit: it commits like an entry in a free slot. The low fence never changes until
// the leaf dies.
//
// Why the fences are inside, and not elsewhere in memory with their address in line 0: every absent key, every scan and
// every change needs them, so each would take one more round trip, or a cache; and the left leaf's high fence would be
// the right one's low fence, so that it had two owners, to be told apart after the death of a client. With keys of 64
// bytes they cost four lines of eleven, with keys of up to 17 bytes one of eight.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "base/check.h"
#include "index/key.h"
#include "index/shared_leaf/leaf/leaf.h"

namespace gannet::index::shared_leaf {

// A byte key that owns its bytes. A copy copies only as many as there are.
class ByteKey {
 public:
  ByteKey() = default;
  explicit ByteKey(std::string_view bytes) : size_(static_cast<uint8_t>(bytes.size())) {
    GANNET_CHECK(bytes.size() <= kShortKeyBytes, "a key of %d bytes", bytes.size());
    std::ranges::copy(bytes, bytes_);
  }
  ByteKey(const ByteKey& other) : size_(other.size_) { std::memcpy(bytes_, other.bytes_, size_); }
  ByteKey& operator=(const ByteKey& other) {  // NOLINT(bugprone-unhandled-self-assignment): memmove
    size_ = other.size_;
    std::memmove(bytes_, other.bytes_, size_);
    return *this;
  }

  std::string_view view() const { return {bytes_, size_}; }
  size_t size() const { return size_; }

  friend bool operator==(const ByteKey& a, const ByteKey& b) { return a.view() == b.view(); }
  friend std::strong_ordering operator<=>(const ByteKey& a, const ByteKey& b) { return a.view() <=> b.view(); }

 private:
  uint8_t size_ = 0;
  char bytes_[kShortKeyBytes];
};

struct TaggedEntry {
  static constexpr int kPerLine = 7;
  static constexpr int kSlots = kPerLine * kSlotLines;  // 42

  uint64_t bits = 0;

  static constexpr TaggedEntry Of(uint64_t tag, uint64_t offset) {
    return {tag << 48 | (offset & rdma::GlobalAddress::kOffsetMask)};
  }
  constexpr uint64_t tag() const { return bits >> 48; }
  constexpr uint64_t offset() const { return bits & rdma::GlobalAddress::kOffsetMask; }

  friend bool operator==(const TaggedEntry&, const TaggedEntry&) = default;
};
static_assert(sizeof(TaggedEntry) == kWordBytes && TaggedEntry::kSlots == kMostSlots);

// Line 0.
struct TaggedHead {
  static constexpr size_t kMostLines = kMostFenceLines + kSlotLines;  // after line 0

  uint64_t state = kAbsentBit;
  uint64_t slots = 0;  // LeafSlots
  uint64_t right = 0;
  std::array<uint32_t, kMostLines> versions{};

  size_t fence_lines() const { return std::min<size_t>(LeafSlots::Unpack(slots).fence_lines, kMostFenceLines); }
  void set_fence_lines(size_t lines) {
    LeafSlots unpacked = LeafSlots::Unpack(slots);
    unpacked.fence_lines = static_cast<uint8_t>(lines);
    slots = unpacked.Pack();
  }

  friend bool operator==(const TaggedHead&, const TaggedHead&) = default;
};
static_assert(sizeof(TaggedHead) == kLineBytes);

using TaggedImage = BasicLeafImage<TaggedHead>;
static_assert(sizeof(TaggedImage) == LeafBytesWith(kMostFenceLines));

// Distance of the fences in the data of their lines: the longest key, and one byte.
constexpr size_t FenceStride(size_t fence_lines) {
  return std::min(1 + kShortKeyBytes, fence_lines * rdma::kLineDataBytes / 3);
}
// Lines for the fences of an index whose keys have at most `max_key_bytes` bytes.
constexpr size_t FenceLinesFor(size_t max_key_bytes) {
  size_t lines = 1;
  while (FenceStride(lines) < 1 + max_key_bytes) ++lines;
  return lines;
}
static_assert(FenceLinesFor(17) == 1 && FenceLinesFor(36) == 2 && FenceLinesFor(55) == 3 && FenceLinesFor(64) == 4);
// Lines from the leaf's start that a READ of its low fence takes.
constexpr size_t LinesToLowFence(size_t fence_lines) {
  return 1 + rdma::LinesFor(FenceStride(fence_lines));
}

enum class Fence : uint8_t { kLow, kHigh, kOtherHigh };

// Place of a fence in the data of the fence lines.
inline size_t FenceOffset(const TaggedHead& head, Fence fence) {
  const size_t stride = FenceStride(head.fence_lines());
  if (fence == Fence::kLow) return 0;
  const bool second = (LeafSlots::Unpack(head.slots).high_copy != 0) == (fence == Fence::kHigh);
  return second ? 2 * stride : stride;
}

// Decodes `stride` bytes. A length that is too long is cut: nothing is believed of what clients write.
inline ByteKey DecodeFence(std::span<const std::byte> fence) {
  const size_t size = std::min({static_cast<size_t>(fence[0]), fence.size() - 1, kShortKeyBytes});
  return ByteKey(std::string_view(reinterpret_cast<const char*>(fence.data()) + 1, size));
}
inline constexpr std::byte kNoFence{255};

// `image` has at least one fence line, as every image of LeafChannel has.
class FenceView {
 public:
  FenceView(const TaggedImage& image, Fence fence) : size_(FenceStride(image.head.fence_lines())) {
    bytes_[0] = kNoFence;  // g++ 12 does not see that the loop runs
    size_t at = FenceOffset(image.head, fence);
    for (size_t done = 0; done < size_;) {
      const size_t within = at % rdma::kLineDataBytes;
      const size_t n = std::min(size_ - done, rdma::kLineDataBytes - within);
      std::memcpy(bytes_.data() + done, image.lines[at / rdma::kLineDataBytes].entries + within, n);
      done += n;
      at += n;
    }
  }
  bool is_none() const { return bytes_[0] == kNoFence; }
  // The fence's key; valid as long as this.
  std::string_view key() const {
    const size_t size = std::min(static_cast<size_t>(bytes_[0]), size_ - 1);
    return {reinterpret_cast<const char*>(bytes_.data()) + 1, size};
  }

 private:
  size_t size_;
  std::array<std::byte, 1 + kShortKeyBytes> bytes_;
};

// Writes a fence into the image; null: there is none. Returns the lines (bits) that it has changed.
inline uint32_t StoreFence(TaggedImage* image, Fence fence, const std::optional<ByteKey>& key) {
  std::array<std::byte, 1 + kShortKeyBytes> bytes;
  const std::string_view view = key.has_value() ? key->view() : std::string_view();
  bytes[0] = key.has_value() ? static_cast<std::byte>(view.size()) : kNoFence;
  std::ranges::copy(view, reinterpret_cast<char*>(bytes.data()) + 1);
  const size_t size = 1 + view.size();
  GANNET_CHECK(size <= FenceStride(image->head.fence_lines()), "a fence of %d bytes", view.size());
  uint32_t lines = 0;
  size_t at = FenceOffset(image->head, fence);
  for (size_t done = 0; done < size;) {
    const size_t within = at % rdma::kLineDataBytes;
    const size_t n = std::min(size - done, rdma::kLineDataBytes - within);
    std::memcpy(image->lines[at / rdma::kLineDataBytes].entries + within, bytes.data() + done, n);
    lines |= 1u << (at / rdma::kLineDataBytes);
    done += n;
    at += n;
  }
  return lines;
}

// The slots whose entries have this tag.
inline uint64_t MatchTag(const TaggedImage& leaf, uint64_t tag) {
  uint64_t equal = 0;
  for (int slot = 0; slot < TaggedEntry::kSlots; ++slot) {
    equal |= uint64_t{leaf.entry<TaggedEntry>(slot).tag() == tag} << slot;
  }
  return equal & leaf.used<TaggedEntry>();
}

}  // namespace gannet::index::shared_leaf
