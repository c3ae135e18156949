// A model of a ROLEX index (FAST'23, 3.2 to 3.4): it leads from a key to the leaf that probably covers it. It has
// linear pieces, and a leaf table with one entry per leaf that existed when it was trained.
//
// In registered memory a model is one block, which does not change once it has been published:
//
//   header   | checksum | generation | first key | last key | synonym table | pieces 16, leaves 16, shift 8 | 0 | 0 |
//   pieces   | first key 8 | slope 8 | intercept 8 |
//   leaves   | leaf's offset / 64: 4 | low 4 | lines 4 |
//
// A piece predicts the position of a key: the number of its leaf times kPositions, plus its place in the leaf. The
// error for the keys that were trained is at most epsilon. So the leaf of a trained key is one of the entries for
// [prediction - epsilon, prediction + epsilon] (the paper's equations 1 and 2). The paper READs all of them. Here an
// entry also has the leaf's low fence, relative to the model's first key, in units of 2^shift: so the client chooses
// one leaf before it READs anything, and the model's error costs it a few comparisons. An entry also tells in which
// line of its leaf a key would be, as far as the leaf's slots are in the order of the keys: then one line suffices.
//
// All this is a hint. After the training leaves split, or are absorbed by their left neighbours. The fences in the leaf
// decide, and who finds another leaf there goes right, or to an entry further left. The paper's constraint, that keys
// move only between a leaf and its synonyms, here says: the keys of a leaf of the table are in it, or right of it, up
// to the next leaf of the table; or left of it, if it is dead.
//
// The checksum shows a reader that it has READ a whole model, and not parts of two: the block may be used again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "index/remote/leaf.h"
#include "index/rolex/plr.h"

namespace gannet::index::rolex {

using remote::IntegerEntry;
using remote::LeafImage;

// Positions per leaf: delta in the paper. Also the number of entries of a leaf after a bulk load with fill 1: the other
// slots wait for inserts.
inline constexpr int kPositions = 16;

// In which line of a leaf a key is: | 0 (1) | known (1) | five bounds, 6 bits each |. The interval of the leaf's keys
// is divided into 64 equal parts. Bound i is the part of the first key of line i + 1: keys in this part and behind it
// are taken to be in a later line than i. That is wrong for a key of line i that is in the same part, one in thirty of
// random keys.
class LineHint {
 public:
  static constexpr int kUnknown = -1;

  LineHint() = default;
  explicit LineHint(uint32_t bits) : bits_(bits) {}
  // For a leaf whose keys the model takes to be in [low, high]. Unknown if too few of its slots are in the order of
  // their keys.
  LineHint(const LeafImage& leaf, uint64_t low, uint64_t high);

  uint32_t bits() const { return bits_; }
  // The line, counted from 0 for the first line of slots; or kUnknown.
  int LineOf(uint64_t key, uint64_t low, uint64_t high) const;

 private:
  static constexpr int kBounds = remote::kSlotLines - 1;
  static constexpr uint32_t kKnown = uint32_t{1} << 30;
  // The sixty-fourth of [low, high] in which the key is.
  static uint32_t PartOf(uint64_t key, uint64_t low, uint64_t high);

  uint32_t bits_ = 0;
};

struct LeafTableEntry {
  uint32_t block = 0;  // the leaf's offset / 64
  uint32_t low = 0;    // (low fence - first key of the model) >> shift
  uint32_t lines = 0;  // LineHint
};
static_assert(sizeof(LeafTableEntry) == 12);

// A leaf as the training found it. Its interval begins behind that of the leaf before it: if leaves were merged while
// they were read, image.head.low is greater than the leaf's.
struct TrainedLeaf {
  uint64_t offset = 0;  // in the owner's memory
  LeafImage image;      // whole
};

class Model {
 public:
  static constexpr size_t kMostLeaves = 4096;
  static constexpr size_t kHeaderBytes = 64;

  // Where to look for a key.
  struct Lead {
    size_t leaf = 0;                // of the leaf table
    int line = LineHint::kUnknown;  // of the leaf
  };

  Model() = default;
  // Trains a model over leaves whose intervals follow each other, at least one and at most kMostLeaves. It is for the
  // keys from `first` to `last`; the first leaf may begin before `first`.
  static Model Train(std::span<const TrainedLeaf> leaves, uint64_t first, uint64_t last, uint32_t epsilon);
  // DataLoss: these are not the bytes of a whole model.
  static StatusOr<Model> Decode(std::span<const std::byte> block);
  // Total bytes of the block whose first kHeaderBytes these are; DataLoss if they cannot be a header.
  static StatusOr<size_t> BytesOf(std::span<const std::byte> header);

  void set_generation(uint64_t generation) { generation_ = generation; }
  void set_synonyms(uint64_t offset) { synonyms_ = offset; }
  size_t bytes() const {
    return kHeaderBytes + pieces_.size() * sizeof(PlrPiece) + leaves_.size() * sizeof(LeafTableEntry);
  }
  // Writes the block; out.size() == bytes().
  void Encode(std::span<std::byte> out) const;

  uint64_t generation() const { return generation_; }
  uint64_t first() const { return first_; }
  uint64_t last() const { return last_; }
  uint64_t synonyms() const { return synonyms_; }
  std::span<const PlrPiece> pieces() const { return pieces_; }
  std::span<const LeafTableEntry> leaves() const { return leaves_; }
  bool Covers(uint64_t key) const { return first_ <= key && key <= last_; }
  // Low fence of a leaf, rounded down to a multiple of 2^shift above the first key.
  uint64_t LowOf(size_t leaf) const { return first_ + (uint64_t{leaves_[leaf].low} << shift_); }
  uint64_t OffsetOf(size_t leaf) const { return uint64_t{leaves_[leaf].block} * kLineBytes; }

  // `key` is covered. If several leaves begin in the unit of the key, the last of them, which may begin after the key.
  Lead For(uint64_t key) const;
  // Position that the pieces predict for a key.
  double Predict(uint64_t key) const;

 private:
  uint64_t HighOf(size_t leaf) const { return leaf + 1 < leaves_.size() ? LowOf(leaf + 1) - 1 : last_; }
  // The checks of Decode that memory safety and termination need.
  bool IsSound() const;

  uint64_t generation_ = 0;
  uint64_t first_ = 0;
  uint64_t last_ = 0;
  uint64_t synonyms_ = 0;
  uint32_t shift_ = 0;
  std::vector<PlrPiece> pieces_;
  std::vector<LeafTableEntry> leaves_;
};

}  // namespace gannet::index::rolex
