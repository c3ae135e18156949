// A model of a ROLEX index (FAST'23, 3.2 to 3.4): it leads from a key to the leaf that probably covers it. It has
// linear pieces, and a leaf table with one entry per leaf that existed when it was trained (leaf_table.h).
//
// In registered memory a model is one block, which does not change once it has been published:
//
//   header   | checksum | generation | synonym table | pieces 16 | of the leaf table: 24 bytes | mask (quiet_lines.h) |
//   pieces   | first number 8 | slope 8 | intercept 8 |
//   leaf table
//
// A piece predicts the position of a key: the number of its leaf times kPositions, plus its place in the leaf. The
// pieces are functions of numbers: of integer keys themselves, and of numbers that the leaf table makes of byte keys.
// The error for the keys that were trained is at most epsilon. So the leaf of a trained key is one of the entries for
// [prediction - epsilon, prediction + epsilon] (the paper's equations 1 and 2). The paper READs all of them. Here an
// entry also has the leaf's low fence: so the client chooses one leaf before it READs anything, and the model's error
// costs it a few comparisons. With integer keys an entry also tells in which line of its leaf a key would be, as far as
// the leaf's slots are in the order of the keys: then one line suffices.
//
// All this is a hint. After the training leaves split, or are absorbed by their left neighbours. The fences in the leaf
// decide, and who finds another leaf there goes right, or to an entry further left. The paper's constraint, that keys
// move only between a leaf and its synonyms, here says: the keys of a leaf of the table are in it, or right of it, up
// to the next leaf of the table; or left of it, if it is dead.
//
// The checksum shows a reader that it has READ a whole model, and not parts of two: the block may be used again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "index/rolex/leaf_table.h"
#include "index/rolex/plr.h"

namespace gannet::index::rolex {

// Positions per leaf: delta in the paper.
inline constexpr int kPositions = 16;
// Number of entries of a leaf after a bulk load with fill 1: the other slots wait for inserts. With integer keys as
// many as positions.
template <class Keys>
inline constexpr int kLoadedEntries = Keys::kSlots * 8 / 9;
static_assert(kLoadedEntries<IntegerKeys> == kPositions && kLoadedEntries<ByteKeys> == 37);

// Keys: IntegerKeys or ByteKeys.
template <class Keys>
class BasicModel {
 public:
  using Key = typename Keys::Key;
  using Point = typename Keys::Point;
  using Table = LeafTable<Keys>;

  static constexpr size_t kMostLeaves = Table::kMostLeaves;
  static constexpr size_t kHeaderBytes = 64;

  // The place where to look for a key.
  struct Prediction {
    size_t leaf = 0;                // of the leaf table
    int line = LineHint::kUnknown;  // of the leaf
  };

  BasicModel() = default;
  // Trains a model over leaves whose intervals follow each other, at least one and at most kMostLeaves. It is for the
  // keys from `first` up to `next`, the first key of the next model (none: there is no such model). The first leaf may
  // begin before `first`.
  static BasicModel Train(std::span<const TrainedLeafOf<Keys>> leaves, const Key& first, const std::optional<Key>& next,
                          uint32_t epsilon);
  // DataLoss: these are not the bytes of a whole model.
  static StatusOr<BasicModel> Decode(std::span<const std::byte> block);
  // Total bytes of the block whose first kHeaderBytes these are; DataLoss if they cannot be a header.
  static StatusOr<size_t> BytesOf(std::span<const std::byte> header);

  void set_generation(uint64_t generation) { generation_ = generation; }
  void set_synonyms(uint64_t offset) { synonyms_ = offset; }
  size_t bytes() const { return kHeaderBytes + pieces_.size() * sizeof(PlrPiece) + table_.bytes(); }
  // Writes the block; out.size() == bytes().
  void Encode(std::span<std::byte> out) const;

  uint64_t generation() const { return generation_; }
  const Key& first() const { return first_; }
  // The first key of the next model; nullopt for the last model.
  const std::optional<Key>& next() const { return next_; }
  uint64_t synonyms() const { return synonyms_; }
  std::span<const PlrPiece> pieces() const { return pieces_; }
  const Table& table() const { return table_; }
  size_t leaves() const { return table_.size(); }
  bool Covers(const Point& point) const {
    return Keys::IsAtMost(first_, point) && !(next_.has_value() && Keys::IsAtMost(*next_, point));
  }
  bool CoversKey(const Key& key) const { return Covers(Keys::At(key)); }
  // Low fence of a leaf; of integer keys, rounded down to a unit (leaf_table.h).
  Key LowOf(size_t leaf) const { return table_.LowOf(leaf, first_); }
  uint64_t OffsetOf(size_t leaf) const { return table_.OffsetOf(leaf); }
  // A number that never decreases in the key (leaf_table.h).
  uint64_t NumberOf(const Key& key) const { return table_.NumberOf(key); }
  // The share of a leaf's interval that lies before the point.
  double ShareBefore(size_t leaf, const Point& point) const requires(!Keys::kKeysElsewhere) {
    return table_.ShareBefore(leaf, point, first_, next_);
  }

  // `point` is covered.
  Prediction For(const Point& point) const;
  // Position that the pieces predict for a number.
  double Predict(uint64_t number) const;

 private:
  uint64_t generation_ = 0;
  Key first_{};
  std::optional<Key> next_{};
  uint64_t synonyms_ = 0;
  std::vector<PlrPiece> pieces_;
  Table table_;
};

using Model = BasicModel<IntegerKeys>;

}  // namespace gannet::index::rolex
