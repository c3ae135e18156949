#include "index/rolex/model.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/runtime.h"
#include "index/rolex/quiet_lines.h"

namespace gannet::index::rolex {
namespace {

// Training takes 0.28 us for a key, its leaf's part included (FAST'23, 4.6); Cost::kTrainKey is a seventh of that.
constexpr uint64_t kTrainingSteps = 7;

struct Header {
  uint64_t checksum = 0;  // of all that follows
  uint64_t generation = 0;
  uint64_t first = 0;
  uint64_t last = 0;
  uint64_t synonyms = 0;
  uint16_t pieces = 0;
  uint16_t leaves = 0;
  uint32_t shift = 0;
  uint64_t mask = 0;  // quiet_lines.h
  uint64_t unused = 0;
};
static_assert(sizeof(Header) == Model::kHeaderBytes);

size_t BytesFor(const Header& header) {
  return sizeof(Header) + size_t{header.pieces} * sizeof(PlrPiece) + size_t{header.leaves} * sizeof(LeafTableEntry);
}

uint64_t ChecksumOf(std::span<const std::byte> block) {
  constexpr size_t kFrom = sizeof(Header::checksum);
  return XXH3_64bits(block.data() + kFrom, block.size() - kFrom) >> 1;  // never the first word of a busy line
}

// A copy of the block without its mask. Empty, if it has none.
std::vector<std::byte> Unmasked(std::span<const std::byte> block, uint64_t mask) {
  if (mask == 0) return {};
  std::vector<std::byte> copy(block.begin(), block.end());
  ApplyMask(copy, mask);
  return copy;
}

Status NoModel() {
  return absl::DataLossError("these bytes are no model, or not a whole one");
}

// The used slots of a leaf by ascending keys.
struct SortedSlots {
  std::array<std::pair<uint64_t, int>, IntegerEntry::kSlots> slots;  // key, slot
  size_t size = 0;

  explicit SortedSlots(const LeafImage& leaf) {
    for (uint64_t used = leaf.used<IntegerEntry>(); used != 0; used &= used - 1) {
      const int slot = std::countr_zero(used);
      slots[size++] = {leaf.entry<IntegerEntry>(slot).key, slot};
    }
    std::sort(slots.begin(), slots.begin() + static_cast<ptrdiff_t>(size));
  }
};

}  // namespace

uint32_t LineHint::PartOf(uint64_t key, uint64_t low, uint64_t high) {
  if (key <= low) return 0;
  if (key >= high) return 63;
  return static_cast<uint32_t>(static_cast<unsigned __int128>(key - low) * 64 /
                               (static_cast<unsigned __int128>(high - low) + 1));
}

LineHint::LineHint(const LeafImage& leaf, uint64_t low, uint64_t high) {
  // Slots are filled from the first on when a leaf is made, in the order of keys. What was inserted later is behind.
  std::array<uint64_t, kBounds> first_keys;
  first_keys.fill(high);
  int known_lines = 0;  // bounds that are set
  int ordered = 0;
  uint64_t before = 0;
  for (uint64_t used = leaf.used<IntegerEntry>(); used != 0; used &= used - 1) {
    const int slot = std::countr_zero(used);
    const uint64_t key = leaf.entry<IntegerEntry>(slot).key;
    if (ordered > 0 && key <= before) break;
    for (const int line = slot / IntegerEntry::kPerLine; known_lines < line; ++known_lines) {
      first_keys[static_cast<size_t>(known_lines)] = key;
    }
    before = key;
    ++ordered;
  }
  if (ordered == 0 || ordered < leaf.count<IntegerEntry>() * 3 / 4) return;
  bits_ = kKnown;
  for (int i = 0; i < kBounds; ++i) bits_ |= PartOf(first_keys[static_cast<size_t>(i)], low, high) << (6 * i);
}

int LineHint::LineOf(uint64_t key, uint64_t low, uint64_t high) const {
  if ((bits_ & kKnown) == 0) return kUnknown;
  const uint32_t part = PartOf(key, low, high);
  int line = 0;
  for (int i = 0; i < kBounds; ++i) line += (bits_ >> (6 * i) & 63) <= part ? 1 : 0;
  return line;
}

Model Model::Train(std::span<const TrainedLeaf> leaves, uint64_t first, uint64_t last, uint32_t epsilon) {
  GANNET_CHECK(!leaves.empty() && leaves.size() <= kMostLeaves && first <= last, "%d leaves", leaves.size());
  Model model;
  model.first_ = first;
  model.last_ = last;
  // Units of the leaves' range, not of the keys': the last model of an index covers all keys up to the greatest there
  // are.
  const uint64_t range = std::max(leaves.back().image.head.low, first) - first;
  model.shift_ = static_cast<uint32_t>(std::max(0, 64 - std::countl_zero(range) - 32));
  model.leaves_.reserve(leaves.size());
  for (const TrainedLeaf& leaf : leaves) {
    const uint64_t low = std::max(leaf.image.head.low, first);
    model.leaves_.push_back({.block = static_cast<uint32_t>(leaf.offset / kLineBytes),
                             .low = static_cast<uint32_t>((low - first) >> model.shift_)});
  }
  PlrBuilder builder(epsilon);
  uint64_t before = 0;
  bool any = false;
  for (size_t i = 0; i < leaves.size(); ++i) {
    model.leaves_[i].lines = LineHint(leaves[i].image, model.LowOf(i), model.HighOf(i)).bits();
    const SortedSlots sorted(leaves[i].image);
    Charge(Cost::kTrainKey, sorted.size * kTrainingSteps);
    for (size_t rank = 0; rank < sorted.size; ++rank) {
      const uint64_t key = sorted.slots[rank].first;
      // A leaf that a hostile client has written may have any keys.
      if (key < first || key > last || (any && key <= before)) continue;
      any = true;
      before = key;
      const auto position = static_cast<int64_t>(i * kPositions + rank * kPositions / sorted.size);
      if (builder.Add(key, position)) continue;
      model.pieces_.push_back(builder.Finish());
      builder.Add(key, position);
    }
  }
  if (!builder.empty()) model.pieces_.push_back(builder.Finish());
  // A key before the first one is predicted as the first one.
  if (model.pieces_.empty()) model.pieces_.push_back({.first = first});
  return model;
}

void Model::Encode(std::span<std::byte> out) const {
  GANNET_CHECK(out.size() == bytes(), "%d bytes for a model of %d", out.size(), bytes());
  Header header{.generation = generation_,
                .first = first_,
                .last = last_,
                .synonyms = synonyms_,
                .pieces = static_cast<uint16_t>(pieces_.size()),
                .leaves = static_cast<uint16_t>(leaves_.size()),
                .shift = shift_};
  std::memcpy(out.data(), &header, sizeof(header));
  std::byte* at = out.data() + sizeof(header);
  std::memcpy(at, pieces_.data(), pieces_.size() * sizeof(PlrPiece));
  at += pieces_.size() * sizeof(PlrPiece);
  std::memcpy(at, leaves_.data(), leaves_.size() * sizeof(LeafTableEntry));
  header.mask = QuietMask(out);
  ApplyMask(out, header.mask);
  std::memcpy(out.data(), &header, sizeof(header));
  header.checksum = ChecksumOf(out);
  std::memcpy(out.data(), &header.checksum, sizeof(header.checksum));
}

StatusOr<size_t> Model::BytesOf(std::span<const std::byte> header) {
  if (header.size() < sizeof(Header)) return NoModel();
  Header read;
  std::memcpy(&read, header.data(), sizeof(read));
  if (read.pieces == 0 || read.leaves == 0 || read.leaves > kMostLeaves) return NoModel();
  return BytesFor(read);
}

StatusOr<Model> Model::Decode(std::span<const std::byte> block) {
  const StatusOr<size_t> bytes = BytesOf(block);
  if (!bytes.ok()) return bytes.status();
  Header header;
  std::memcpy(&header, block.data(), sizeof(header));
  if (block.size() < *bytes || header.checksum != ChecksumOf(block.first(*bytes))) return NoModel();
  Model model;
  model.generation_ = header.generation;
  model.first_ = header.first;
  model.last_ = header.last;
  model.synonyms_ = header.synonyms;
  model.shift_ = header.shift;
  const std::vector<std::byte> unmasked = Unmasked(block.first(*bytes), header.mask);
  const std::byte* at = (unmasked.empty() ? block.data() : unmasked.data()) + sizeof(header);
  model.pieces_.resize(header.pieces);
  std::memcpy(model.pieces_.data(), at, header.pieces * sizeof(PlrPiece));
  at += header.pieces * sizeof(PlrPiece);
  model.leaves_.resize(header.leaves);
  std::memcpy(model.leaves_.data(), at, header.leaves * sizeof(LeafTableEntry));
  if (!model.IsSound()) return NoModel();
  return model;
}

bool Model::IsSound() const {
  if (first_ > last_ || shift_ > 32 || leaves_[0].low != 0) return false;
  for (size_t i = 1; i < leaves_.size(); ++i) {
    if (leaves_[i].low < leaves_[i - 1].low || uint64_t{leaves_[i].low} > (last_ - first_) >> shift_) return false;
  }
  for (size_t i = 1; i < pieces_.size(); ++i) {
    if (pieces_[i].first <= pieces_[i - 1].first) return false;
  }
  return true;
}

double Model::Predict(uint64_t key) const {
  const auto after = std::upper_bound(pieces_.begin(), pieces_.end(), key,
                                      [](uint64_t at, const PlrPiece& piece) { return at < piece.first; });
  if (after == pieces_.begin()) return pieces_.front().intercept;
  const double position = std::prev(after)->At(key);
  // Between two pieces there may be no trained key, and the line may go far beyond the next one's.
  return after == pieces_.end() ? position : std::min(position, after->intercept);
}

Model::Lead Model::For(uint64_t key) const {
  const double predicted = Predict(key) / kPositions;
  const auto most = static_cast<double>(leaves_.size() - 1);
  // Written so that what is no number becomes 0.
  size_t leaf = predicted > 0 ? static_cast<size_t>(std::min(predicted, most)) : 0;
  const auto unit = static_cast<uint32_t>(std::min<uint64_t>((key - first_) >> shift_, UINT32_MAX));
  // The last leaf that does not begin behind the key: few steps from the prediction, if the key was trained; otherwise
  // steps of growing size.
  if (leaves_[leaf].low <= unit) {
    size_t end = leaf + 1;
    for (size_t step = 1; end < leaves_.size() && leaves_[end].low <= unit; step *= 2) {
      leaf = end;
      end += step;
    }
    end = std::min(end, leaves_.size());
    while (leaf + 1 < end) {
      const size_t middle = (leaf + end) / 2;
      (leaves_[middle].low <= unit ? leaf : end) = middle;
    }
  } else {
    size_t end = leaf;
    size_t step = 1;
    for (leaf -= 1; leaves_[leaf].low > unit; step *= 2) {  // leaf 0 begins at 0
      end = leaf;
      leaf -= std::min(step, leaf);
    }
    while (leaf + 1 < end) {
      const size_t middle = (leaf + end) / 2;
      (leaves_[middle].low <= unit ? leaf : end) = middle;
    }
  }
  return {.leaf = leaf, .line = LineHint(leaves_[leaf].lines).LineOf(key, LowOf(leaf), HighOf(leaf))};
}

}  // namespace gannet::index::rolex
