#include "index/rolex/model.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/runtime.h"
#include "index/rolex/block_checksum.h"
#include "index/rolex/quiet_lines.h"

namespace gannet::index::rolex {
namespace {

// Training takes 0.28 us for a key, its leaf's part included (FAST'23, 4.6); Cost::kTrainKey is a seventh of that.
constexpr uint64_t kTrainingSteps = 7;

struct Header {
  uint64_t checksum = 0;  // of all that follows
  uint64_t generation = 0;
  uint64_t synonyms = 0;
  uint16_t pieces = 0;
  std::array<uint16_t, 3> unused{};
  TableHeader table{};
  uint64_t mask = 0;  // quiet_lines.h
};
static_assert(sizeof(Header) == Model::kHeaderBytes && std::has_unique_object_representations_v<Header>);

template <class Keys>
size_t BytesFor(const Header& header) {
  return sizeof(Header) + size_t{header.pieces} * sizeof(PlrPiece) + LeafTable<Keys>::BytesOf(header.table);
}

Status NoModel() {
  return absl::DataLossError("these bytes are no model, or not a whole one");
}

// The known keys of a leaf by ascending order, as slots.
template <class Keys>
struct SortedSlots {
  std::array<int, Keys::kSlots> slots;
  size_t size = 0;

  explicit SortedSlots(const TrainedLeafOf<Keys>& leaf) {
    for (uint64_t used = leaf.image.template used<typename Keys::Entry>(); used != 0; used &= used - 1) {
      const int slot = std::countr_zero(used);
      if (Keys::Knows(leaf.keys, slot)) slots[size++] = slot;
    }
    std::sort(slots.begin(), slots.begin() + static_cast<ptrdiff_t>(size), [&leaf](int a, int b) {
      return Keys::KeyAt(leaf.image, leaf.keys, a) < Keys::KeyAt(leaf.image, leaf.keys, b);
    });
  }
};

// The last of `size` places for which `begins`, which is true up to some place, and for place 0. It is searched from
// `guess` on, by steps of growing size, then by halving.
template <class Begins>
size_t LastThatBegins(size_t guess, size_t size, const Begins& begins) {
  size_t last = guess;
  size_t end = guess;
  if (begins(guess)) {
    end = guess + 1;
    for (size_t step = 1; end < size && begins(end); step *= 2) {
      last = end;
      end += step;
    }
    end = std::min(end, size);
  } else {
    for (size_t step = 1; !begins(last); step *= 2) {
      end = last;
      last -= std::min(step, last);
    }
  }
  while (last + 1 < end) {
    const size_t middle = (last + end) / 2;
    (begins(middle) ? last : end) = middle;
  }
  return last;
}

}  // namespace

template <class Keys>
BasicModel<Keys> BasicModel<Keys>::Train(std::span<const TrainedLeafOf<Keys>> leaves, const Key& first,
                                         const std::optional<Key>& next, uint32_t epsilon) {
  GANNET_CHECK(!leaves.empty() && leaves.size() <= kMostLeaves, "%d leaves", leaves.size());
  BasicModel model;
  model.first_ = first;
  model.next_ = next;
  model.table_ = Table(leaves, first, next);
  PlrBuilder builder(epsilon);
  uint64_t before = 0;
  bool any = false;
  for (size_t i = 0; i < leaves.size(); ++i) {
    const SortedSlots<Keys> sorted(leaves[i]);
    Charge(Cost::kTrainKey, sorted.size * kTrainingSteps);
    for (size_t rank = 0; rank < sorted.size; ++rank) {
      const Key& key = Keys::KeyAt(leaves[i].image, leaves[i].keys, sorted.slots[rank]);
      const uint64_t number = model.NumberOf(key);
      // A leaf that a hostile client has written may have any keys. And byte keys may have the same number.
      if (!model.CoversKey(key) || (any && number <= before)) continue;
      any = true;
      before = number;
      const auto position = static_cast<int64_t>(i * kPositions + rank * kPositions / sorted.size);
      if (builder.Add(number, position)) continue;
      model.pieces_.push_back(builder.Finish());
      builder.Add(number, position);
    }
  }
  if (!builder.empty()) model.pieces_.push_back(builder.Finish());
  // A key before the first one is predicted as the first one.
  if (model.pieces_.empty()) model.pieces_.push_back({.first = model.NumberOf(first)});
  return model;
}

template <class Keys>
void BasicModel<Keys>::Encode(std::span<std::byte> out) const {
  GANNET_CHECK(out.size() == bytes(), "%d bytes for a model of %d", out.size(), bytes());
  Header header{.generation = generation_, .synonyms = synonyms_, .pieces = static_cast<uint16_t>(pieces_.size())};
  const size_t piece_bytes = pieces_.size() * sizeof(PlrPiece);
  std::memcpy(out.data() + sizeof(header), pieces_.data(), piece_bytes);
  table_.Encode(first_, next_, &header.table, out.subspan(sizeof(header) + piece_bytes));
  header.mask = QuietMask(out);
  ApplyMask(out, header.mask);
  std::memcpy(out.data(), &header, sizeof(header));
  header.checksum = ChecksumOf(out);
  std::memcpy(out.data(), &header, sizeof(header.checksum));
}

template <class Keys>
StatusOr<size_t> BasicModel<Keys>::BytesOf(std::span<const std::byte> block) {
  Header header;
  if (block.size() < sizeof(header)) return NoModel();
  std::memcpy(&header, block.data(), sizeof(header));
  if (header.pieces == 0 || header.table.leaves == 0 || header.table.leaves > kMostLeaves) return NoModel();
  return BytesFor<Keys>(header);
}

template <class Keys>
StatusOr<BasicModel<Keys>> BasicModel<Keys>::Decode(std::span<const std::byte> block) {
  const StatusOr<size_t> bytes = BytesOf(block);
  if (!bytes.ok()) return bytes.status();
  if (block.size() < *bytes) return NoModel();
  block = block.first(*bytes);
  Header header;
  std::memcpy(&header, block.data(), sizeof(header));
  if (header.checksum != ChecksumOf(block)) return NoModel();
  std::vector<std::byte> unmasked;
  if (header.mask != 0) {
    unmasked.assign(block.begin(), block.end());
    ApplyMask(unmasked, header.mask);
    block = unmasked;
  }
  BasicModel model;
  model.generation_ = header.generation;
  model.synonyms_ = header.synonyms;
  model.pieces_.resize(header.pieces);
  const size_t piece_bytes = model.pieces_.size() * sizeof(PlrPiece);
  std::memcpy(model.pieces_.data(), block.data() + sizeof(header), piece_bytes);
  if (!model.table_.Decode(header.table, block.subspan(sizeof(header) + piece_bytes), &model.first_, &model.next_)) {
    return NoModel();
  }
  for (size_t i = 1; i < model.pieces_.size(); ++i) {
    if (model.pieces_[i].first <= model.pieces_[i - 1].first) return NoModel();
  }
  return model;
}

template <class Keys>
double BasicModel<Keys>::Predict(uint64_t number) const {
  const auto after = std::upper_bound(pieces_.begin(), pieces_.end(), number,
                                      [](uint64_t at, const PlrPiece& piece) { return at < piece.first; });
  if (after == pieces_.begin()) return pieces_.front().intercept;
  const double position = std::prev(after)->At(number);
  // Between two pieces there may be no trained key, and the line may go far beyond the next one's.
  return after == pieces_.end() ? position : std::min(position, after->intercept);
}

template <class Keys>
typename BasicModel<Keys>::Prediction BasicModel<Keys>::For(const Point& point) const {
  double predicted = 0;
  if constexpr (Keys::kKeysElsewhere) {
    predicted = Predict(NumberOf(point.key)) / kPositions;
  } else {
    predicted = Predict(point) / kPositions;
  }
  const auto most = static_cast<double>(leaves() - 1);
  // The expression is written so that what is no number becomes 0.
  const size_t guess = predicted > 0 ? static_cast<size_t>(std::min(predicted, most)) : 0;
  const auto probe = table_.ProbeOf(point, first_);
  const size_t leaf = LastThatBegins(guess, leaves(), [&](size_t i) { return table_.Begins(i, probe); });
  return {.leaf = leaf, .line = table_.LineOf(leaf, point, first_, next_)};
}

template class BasicModel<IntegerKeys>;
template class BasicModel<ByteKeys>;

}  // namespace gannet::index::rolex
