#include "index/rolex/upper_model.h"

#include <algorithm>
#include <utility>

namespace gannet::index::rolex {
namespace {

// A level of so few pieces is searched as it is.
constexpr size_t kFewPieces = 8;

// The pieces over n keys that do not descend.
template <class KeyAt>
std::vector<PlrPiece> PiecesOver(size_t n, uint32_t epsilon, const KeyAt& key_at) {
  std::vector<PlrPiece> pieces;
  PlrBuilder builder(epsilon);
  for (size_t i = 0; i < n; ++i) {
    if (i + 1 < n && key_at(i + 1) == key_at(i)) continue;
    const auto position = static_cast<int64_t>(i);
    if (builder.Add(key_at(i), position)) continue;
    pieces.push_back(builder.Finish());
    builder.Add(key_at(i), position);
  }
  if (!builder.empty()) pieces.push_back(builder.Finish());
  return pieces;
}

// The last of n keys that is at most `key`, or 0. It is probably within `epsilon` + 1 of `guess`, and found elsewhere,
// too.
template <class KeyAt>
size_t LastAtMost(size_t n, double guess, size_t epsilon, uint64_t key, const KeyAt& key_at) {
  const auto middle = guess > 0 ? static_cast<size_t>(std::min(guess, static_cast<double>(n - 1))) : 0;
  const size_t reach = epsilon + 1;
  size_t from = middle > reach ? middle - reach : 0;
  size_t to = std::min(n, middle + reach + 1);
  for (size_t step = reach; from > 0 && key_at(from) > key; step *= 2) {
    to = from;
    from = from > step ? from - step : 0;
  }
  for (size_t step = reach; to < n && key_at(to) <= key; step *= 2) {
    from = to;
    to = std::min(n, to + step);
  }
  // The answer is in [from, to), or 0. Without branches that a processor would guess wrong.
  for (size_t length = to - from; length > 1;) {
    const size_t half = length / 2;
    from = key_at(from + half) <= key ? from + half : from;
    length -= half;
  }
  return from;
}

}  // namespace

UpperModel::UpperModel(std::vector<uint64_t> keys, uint32_t epsilon) : keys_(std::move(keys)), epsilon_(epsilon) {
  levels_.push_back(PiecesOver(keys_.size(), epsilon_, [this](size_t i) { return keys_[i]; }));
  while (levels_.back().size() > kFewPieces) {
    const Pieces& below = levels_.back();
    Pieces pieces = PiecesOver(below.size(), epsilon_, [&below](size_t i) { return below[i].first; });
    if (pieces.size() >= below.size()) break;  // epsilon 0, and keys that no line fits
    levels_.push_back(std::move(pieces));
  }
}

size_t UpperModel::Find(uint64_t key) const {
  const Pieces& top = levels_.back();
  size_t at = 0;
  if (top.size() <= kFewPieces) {
    while (at + 1 < top.size() && top[at + 1].first <= key) ++at;
  } else {
    at = LastAtMost(top.size(), 0, top.size(), key, [&top](size_t i) { return top[i].first; });
  }
  for (size_t level = levels_.size(); level-- > 0;) {
    const Pieces& pieces = levels_[level];
    if (key < pieces[at].first) return 0;  // before the first of all
    double guess = pieces[at].At(key);
    // Between two pieces there is no key, and the line may go far beyond the next one's.
    if (at + 1 < pieces.size()) guess = std::min(guess, pieces[at + 1].intercept);
    if (level > 0) {
      const Pieces& below = levels_[level - 1];
      at = LastAtMost(below.size(), guess, epsilon_, key, [&below](size_t i) { return below[i].first; });
    } else {
      at = LastAtMost(keys_.size(), guess, epsilon_, key, [this](size_t i) { return keys_[i]; });
    }
  }
  return at;
}

size_t UpperModel::bytes() const {
  size_t bytes = keys_.size() * sizeof(uint64_t);
  for (const Pieces& pieces : levels_) bytes += pieces.size() * sizeof(PlrPiece);
  return bytes;
}

}  // namespace gannet::index::rolex
