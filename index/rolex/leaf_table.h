// The leaf table of a model (model.h): for each leaf that existed when the model was trained, its place, and where its
// keys begin. There is one for integer keys, and one for byte keys.
//
// Integer keys. An entry has the leaf's low fence relative to the model's first key, in units of 2^shift. Two leaves
// may begin in one unit; then the search takes the later one, which may begin behind the key. That costs a step to the
// left (Guide::StartOf), and is very rare: there are 2^32 units. An entry also tells in which line of its leaf a key
// would be.
//
// Byte keys. The table has all low fences whole. What they have in common is stored once: the fences of a model are
// neighbours of each other, so that is what long keys mostly consist of. Fences are not keys, but the shortest strings
// that separate keys. So a name of 20 bytes takes about 5 here, and no two leaves look alike to the client, whatever
// the keys are: keys with a common prefix of any length, keys that are prefixes of others, keys that differ in the last
// of 64 bytes only. The alternatives:
//   - 4 bytes of each fence, as for integers, and a READ of the fences that look alike: one more round trip for keys
//     that are not alike within these bytes, e.g. those of a model whose keys begin with one of two long prefixes.
//   - the digits of the range that each byte takes (xstore/model/projection.h): XStore has one such projection for all
//     of its sub-models. Here each model would have its own, of up to 144 bytes; and keys would still look alike.
//
// A client READs the whole leaf, of 8 to 11 lines. One line would do if the client knew which: but to tell the lines of
// a leaf apart takes five more strings that separate keys, more bytes than all the rest. The whole leaf has its proof,
// too: a key that it does not have is absent.
//
// The pieces of a model need numbers. The number of a byte key is made of the 8 bytes that follow what all fences have
// in common. It never decreases in the key. Keys may have the same number: the prediction is worse for them then, and
// costs a few comparisons more. It is never trusted: the search in the table begins at the prediction, goes away from
// it by steps of growing size, and so takes at most twice the logarithm of the number of leaves.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "index/shared_leaf/leaf/byte_keys.h"
#include "index/shared_leaf/leaf/integer_keys.h"
#include "index/shared_leaf/leaf/leaf.h"

namespace gannet::index::rolex {

using shared_leaf::ByteKey;
using shared_leaf::ByteKeys;
using shared_leaf::IntegerEntry;
using shared_leaf::IntegerKeys;
using shared_leaf::LeafImage;

// A leaf as the training found it: whole, with its keys.
template <class Keys>
struct TrainedLeafOf {
  // The leaf's interval begins behind that of the leaf before it: if leaves were merged while they were read, this is
  // greater than the leaf's low fence.
  typename Keys::Key low{};
  uint64_t offset = 0;  // in the owner's memory
  typename Keys::Image image;
  [[no_unique_address]] typename Keys::EntryKeys keys{};
};
using TrainedLeaf = TrainedLeafOf<IntegerKeys>;

// Tells in which line of a leaf of integer keys a key is: | 0 (1) | known (1) | five bounds, 6 bits each |. The
// interval of the leaf's keys is divided into 64 equal parts. Bound i is the part of the first key of line i + 1: keys
// in this part and behind it are taken to be in a later line than i. That is wrong for a key of line i that is in the
// same part, one in thirty of random keys.
class LineHint {
 public:
  static constexpr int kUnknown = -1;

  LineHint() = default;
  explicit LineHint(uint32_t bits) : bits_(bits) {}
  // Makes the hint of a leaf whose keys the model takes to be in [low, high]. Unknown if too few of its slots are in
  // the order of their keys.
  LineHint(const LeafImage& leaf, uint64_t low, uint64_t high);

  uint32_t bits() const { return bits_; }
  // The line, counted from 0 for the first line of slots; or kUnknown.
  int LineOf(uint64_t key, uint64_t low, uint64_t high) const;

 private:
  static constexpr int kBounds = shared_leaf::kSlotLines - 1;
  static constexpr uint32_t kKnown = uint32_t{1} << 30;
  // The sixty-fourth of [low, high] in which the key is.
  static uint32_t PartOf(uint64_t key, uint64_t low, uint64_t high);

  uint32_t bits_ = 0;
};

// The fields of a model's header that depend on the kind of its keys.
struct TableHeader {
  uint16_t leaves = 0;
  uint8_t shift = 0;  // of integer keys
  // Numbers of bytes, for byte keys: of the model's first key, of the next model's first key (kNoKey: there is none),
  // of the common prefix of the fences, and of all these and the fences together.
  static constexpr uint8_t kNoKey = 255;
  uint8_t first_bytes = 0;
  uint8_t next_bytes = 0;
  uint8_t common_bytes = 0;
  uint16_t text_bytes = 0;
  std::array<uint64_t, 2> keys{};  // the model's first key, and its last, where keys are integers
};

// What both tables offer; `first` and `next` are those of the model (BasicModel), for which the table is made:
//   LeafTable(leaves, first, next)
//   size, OffsetOf, LowOf
//   ProbeOf    what is to be searched for
//   Begins     leaf `i` begins at the probe's key, or left of it; always true for the first leaf
//   NumberOf   of a key, for the pieces
//   LineOf     of a key in the leaf where the search has ended; or LineHint::kUnknown
//   bytes      of the encoded table

class IntegerLeafTable {
 public:
  static constexpr size_t kMostLeaves = 4096;
  struct Entry {
    uint32_t block = 0;  // the leaf's offset / 64
    uint32_t low = 0;    // (low fence - first key of the model) >> shift
    uint32_t lines = 0;  // LineHint
  };
  static_assert(sizeof(Entry) == 12);
  using Probe = uint32_t;  // units from the model's first key

  IntegerLeafTable() = default;
  IntegerLeafTable(std::span<const TrainedLeaf> leaves, uint64_t first, std::optional<uint64_t> next);

  size_t size() const { return entries_.size(); }
  std::span<const Entry> entries() const { return entries_; }
  uint64_t OffsetOf(size_t leaf) const { return uint64_t{entries_[leaf].block} * kLineBytes; }
  // Low fence of a leaf, rounded down to a multiple of 2^shift above the first key.
  uint64_t LowOf(size_t leaf, uint64_t first) const { return first + (uint64_t{entries_[leaf].low} << shift_); }
  Probe ProbeOf(uint64_t key, uint64_t first) const {
    return static_cast<uint32_t>(std::min<uint64_t>((key - first) >> shift_, UINT32_MAX));
  }
  bool Begins(size_t leaf, Probe probe) const { return entries_[leaf].low <= probe; }
  uint64_t NumberOf(uint64_t key) const { return key; }
  int LineOf(size_t leaf, uint64_t key, uint64_t first, std::optional<uint64_t> next) const {
    return LineHint(entries_[leaf].lines).LineOf(key, LowOf(leaf, first), HighOf(leaf, first, next));
  }

  // The share of a leaf's interval that lies before `key`.
  double ShareBefore(size_t leaf, uint64_t key, uint64_t first, std::optional<uint64_t> next) const {
    const uint64_t low = LowOf(leaf, first);
    if (key <= low) return 0;
    return std::min(1.0, static_cast<double>(key - low) / (static_cast<double>(HighOf(leaf, first, next) - low) + 1));
  }

  size_t bytes() const { return entries_.size() * sizeof(Entry); }
  static size_t BytesOf(const TableHeader& header) { return size_t{header.leaves} * sizeof(Entry); }
  void Encode(uint64_t first, std::optional<uint64_t> next, TableHeader* header, std::span<std::byte> out) const;
  // False: this is no table.
  bool Decode(const TableHeader& header, std::span<const std::byte> in, uint64_t* first, std::optional<uint64_t>* next);

 private:
  uint64_t HighOf(size_t leaf, uint64_t first, std::optional<uint64_t> next) const {
    if (leaf + 1 < entries_.size()) return LowOf(leaf + 1, first) - 1;
    return next.has_value() ? *next - 1 : UINT64_MAX;
  }

  uint32_t shift_ = 0;
  std::vector<Entry> entries_;
};

// Encoding: | leaf's offset / 64: 4, per leaf | end of the fence in the text 2, per leaf | first | next | text |. The
// text has what the fences have in common, then the own parts of the fences. The first leaf begins with the model; its
// fence is not stored.
class ByteLeafTable {
 public:
  static constexpr size_t kMostLeaves = 1000;  // whose fences take less than 2^16 bytes
  struct Probe {
    // -1: the key is left of all that begins with what the fences have in common; 1: right of it.
    int side = 0;
    std::string_view own{};  // the rest of the key; of the probe's key, which must outlive this
    bool below = false;
  };

  ByteLeafTable() = default;
  ByteLeafTable(std::span<const TrainedLeafOf<ByteKeys>> leaves, const ByteKey& first,
                const std::optional<ByteKey>& next);

  size_t size() const { return blocks_.size(); }
  uint64_t OffsetOf(size_t leaf) const { return uint64_t{blocks_[leaf]} * kLineBytes; }
  ByteKey LowOf(size_t leaf, const ByteKey& first) const;
  Probe ProbeOf(const ByteKeys::Point& point, const ByteKey& /*first*/) const {
    return ProbeOf(point.key.view(), point.below);
  }
  bool Begins(size_t leaf, const Probe& probe) const {
    if (leaf == 0 || probe.side > 0) return true;
    if (probe.side < 0) return false;
    const int order = FenceOf(leaf).compare(probe.own);
    return probe.below ? order < 0 : order <= 0;
  }
  uint64_t NumberOf(const ByteKey& key) const;
  static int LineOf(size_t /*leaf*/, const ByteKeys::Point& /*point*/, const ByteKey& /*first*/,
                    const std::optional<ByteKey>& /*next*/) {
    return LineHint::kUnknown;
  }

  size_t bytes() const { return blocks_.size() * kEntryBytes + text_.size() + key_bytes_; }
  static size_t BytesOf(const TableHeader& header) { return size_t{header.leaves} * kEntryBytes + header.text_bytes; }
  void Encode(const ByteKey& first, const std::optional<ByteKey>& next, TableHeader* header,
              std::span<std::byte> out) const;
  bool Decode(const TableHeader& header, std::span<const std::byte> in, ByteKey* first, std::optional<ByteKey>* next);

 private:
  static constexpr size_t kEntryBytes = sizeof(uint32_t) + sizeof(uint16_t);
  Probe ProbeOf(std::string_view key, bool below) const;
  std::string_view common() const { return std::string_view(text_).substr(0, common_); }
  // The part of a fence that follows what all have in common. Not of the first leaf.
  std::string_view FenceOf(size_t leaf) const {
    const size_t begin = ends_[leaf - 1];
    return std::string_view(text_).substr(begin, ends_[leaf] - begin);
  }

  // The tables below have one element per leaf.
  std::vector<uint32_t> blocks_;
  std::vector<uint16_t> ends_;
  std::string text_;
  size_t common_ = 0;
  size_t key_bytes_ = 0;  // of the model's two keys
};

template <class Keys>
using LeafTable = std::conditional_t<Keys::kKeysElsewhere, ByteLeafTable, IntegerLeafTable>;

}  // namespace gannet::index::rolex
