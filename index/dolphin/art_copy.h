// ArtCopy: a client's copy of an inner node (inner_node.h), packed. ArtCache has one for each node that it knows.
//
//   | low half of the line | low half of the version | shape | prefix | entries |      padded to a multiple of 4 bytes
//
//   line     offset of the node / 64. 0: the copy is given up.
//   shape    bits 0 to 9: the rest of the line; 10 to 12: type; 13 to 18: bytes of the prefix; 19 to 27: number of
//            entries; 28: they are wide; 29: the version has no other bits; 30: the copy was used
//   entries  those that count, by their bytes. Six bytes each, with 27 bits for a line; or, wide, eight bytes each, if
//            one of them leads behind the first 8 GiB of the owner's memory.
//
// Copies may be read by several threads at once; while one is changed, nobody reads.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/cache_line.h"
#include "index/dolphin/inner_node.h"

namespace gannet::index::dolphin {

class ArtCopy {
 public:
  static constexpr size_t kUnit = sizeof(uint32_t);
  static constexpr size_t kMostEntries = kMostByte + 1;

  // A copy, unpacked.
  struct Content {
    uint64_t line = 0;
    std::optional<uint32_t> version;  // nullopt: it has more bits
    NodeType type = kLeafType;
    bool is_used = true;
    ByteKey prefix;
    size_t count = 0;
    std::array<uint64_t, kMostEntries> entries;

    bool IsWide() const;
    size_t bytes() const { return BytesFor(prefix.size(), count, IsWide()); }
  };
  static constexpr size_t BytesFor(size_t prefix_bytes, size_t entries, bool is_wide) {
    return RoundUp(kHeadBytes + prefix_bytes + entries * (is_wide ? kWordBytes : kNarrowBytes), kUnit);
  }

  // A copy at `memory`, which is a multiple of kUnit.
  explicit ArtCopy(std::byte* memory) : memory_(memory) {}
  // Writes content.bytes().
  void Store(const Content& content);
  void Load(Content* content) const;
  void CopyFrom(const ArtCopy& copy);

  size_t bytes() const { return BytesFor(prefix_bytes(), count(), is_wide()); }
  uint64_t line() const { return Half(0) | uint64_t{Shape() & 0x3ff} << 32; }
  std::optional<uint32_t> version() const {
    return (Shape() & kHasVersion) != 0 ? std::optional(Half(1)) : std::nullopt;
  }
  NodeType type() const { return static_cast<NodeType>(Shape() >> 10 & 7); }
  std::string_view prefix() const { return {reinterpret_cast<const char*>(memory_) + kHeadBytes, prefix_bytes()}; }
  size_t count() const { return Shape() >> 19 & 0x1ff; }
  uint64_t entry(size_t i) const;
  // Number of entries with a smaller byte.
  size_t LowerBound(int byte) const;
  uint64_t EntryUpTo(int most) const {
    const size_t at = LowerBound(most + 1);
    return at == 0 ? 0 : entry(at - 1);
  }
  uint64_t EntryFrom(int least) const {
    const size_t at = LowerBound(least);
    return at == count() ? 0 : entry(at);
  }

  // For the search for a victim. Readers note a use at once, and write the shape only for the first one.
  void NoteUse() const {
    if ((Shape() & kIsUsed) == 0) SetShape(Shape() | kIsUsed);
  }
  // Returns whether it was noted.
  bool ForgetUse() {
    const bool was_used = (Shape() & kIsUsed) != 0;
    SetShape(Shape() & ~kIsUsed);
    return was_used;
  }
  // bytes() stays.
  void GiveUp();
  bool is_given_up() const { return line() == 0; }

 private:
  static constexpr size_t kHeadBytes = 3 * kUnit;
  static constexpr size_t kNarrowBytes = 6;
  static constexpr uint32_t kIsWide = uint32_t{1} << 28;
  static constexpr uint32_t kHasVersion = uint32_t{1} << 29;
  static constexpr uint32_t kIsUsed = uint32_t{1} << 30;

  uint32_t Half(size_t i) const { return reinterpret_cast<const uint32_t*>(memory_)[i]; }
  std::atomic_ref<uint32_t> ShapeWord() const { return std::atomic_ref(reinterpret_cast<uint32_t*>(memory_)[2]); }
  uint32_t Shape() const { return ShapeWord().load(std::memory_order_relaxed); }
  void SetShape(uint32_t shape) const { ShapeWord().store(shape, std::memory_order_relaxed); }
  size_t prefix_bytes() const { return Shape() >> 13 & 0x3f; }
  bool is_wide() const { return (Shape() & kIsWide) != 0; }

  std::byte* memory_;
};
static_assert(kMostPrefix <= 0x3f && ArtCopy::kMostEntries <= 0x1ff);

}  // namespace gannet::index::dolphin
