#include "index/xstore/model/projection.h"

#include <algorithm>

namespace gannet::index::xstore {
namespace {

// The upper end of a byte's trained range: half as much again above `high`, for keys that grow.
int WithRoom(int low, int high) {
  return low == high ? high : std::min(255, high + (high - low) / 2 + 1);
}

// Packing an integer's bytes pays if it shrinks the range by at least this factor.
constexpr uint64_t kWorthPacking = 4;

// This bit of the number of digits in a message says that the projection is one of long keys.
constexpr uint8_t kHasWords = 0x80;
static_assert(Projection::kMaxDigits < kHasWords);

}  // namespace

bool Projection::SetScales() {
  constexpr uint64_t kLimit = uint64_t{1} << 63;
  uint64_t scale = 1;
  for (int i = digits_ - 1; i >= 0; --i) {
    digit_[i].scale = scale;
    const auto radix = static_cast<uint64_t>(digit_[i].high - digit_[i].low) + 1;
    if (scale > kLimit / radix) return false;
    scale *= radix;
  }
  return true;
}

bool Projection::Append(const Digit& digit) {
  if (digits_ == kMaxDigits) return false;
  digit_[digits_++] = digit;
  if (SetScales()) return true;
  --digits_;
  SetScales();
  return false;
}

template <int W>
Projection Projection::Learner<W>::Learn() const {
  Projection packed;
  // Takes as many leading bytes as fit. The last ones need no room for growth; they only separate equal prefixes.
  bool fits = true;
  for (size_t word = 0; word < W && fits; ++word) {
    if constexpr (W > kMostWordsOfDigits) {
      if (greatest_ < least_) break;  // there was no key
      packed.words_.push_back(least_.words[word]);
      const auto first = static_cast<ptrdiff_t>(word * 8);
      if (std::equal(low_.begin() + first, low_.begin() + first + 8, high_.begin() + first)) continue;
    }
    for (size_t i = word * 8; i < word * 8 + 8 && fits; ++i) {
      fits = low_[i] <= high_[i] && packed.Append({low_[i], static_cast<uint8_t>(WithRoom(low_[i], high_[i])),
                                                   static_cast<uint16_t>(word), 0});
    }
  }
  if constexpr (W == 1) {
    const uint64_t plain = greatest_.words[0] - least_.words[0];
    const bool whole = packed.digits_ == 8;
    if (!whole || packed(greatest_) - packed(least_) >= plain / kWorthPacking) return Projection();
  }
  return packed;
}

#define GANNET_INSTANTIATE(W) template class Projection::Learner<W>;
GANNET_XSTORE_WIDTHS(GANNET_INSTANTIATE)

void Projection::Encode(rdma::WireWriter& writer) const {
  writer.PutU8(static_cast<uint8_t>(digits_ | (words_.empty() ? 0 : kHasWords)));
  for (int i = 0; i < digits_; ++i) {
    writer.PutU8(digit_[i].low);
    writer.PutU8(digit_[i].high);
    if (!words_.empty()) writer.PutU8(static_cast<uint8_t>(digit_[i].word));
  }
  if (words_.empty()) return;
  writer.PutU8(static_cast<uint8_t>(words_.size()));
  for (const uint64_t word : words_) writer.PutU64(word);
}

StatusOr<Projection> Projection::Decode(rdma::WireReader& reader, int words) {
  Projection projection;
  const uint8_t shape = reader.GetU8();
  const int digits = shape & ~kHasWords;
  const bool has_words = (shape & kHasWords) != 0;
  const auto other_keys = [] {
    return absl::InvalidArgumentError("a model of the owner has a projection for other keys");
  };
  if (digits > std::min(kMaxDigits, words * 8) || (has_words && words <= kMostWordsOfDigits)) return other_keys();
  projection.digits_ = digits;
  for (int i = 0; i < digits; ++i) {
    projection.digit_[i].low = reader.GetU8();
    projection.digit_[i].high = reader.GetU8();
    if (has_words) {
      projection.digit_[i].word = reader.GetU8();
      // Digits come in ascending order, at most one for each byte.
      const bool descends = i > 0 && projection.digit_[i].word < projection.digit_[i - 1].word;
      const bool too_many = i >= 8 && projection.digit_[i].word == projection.digit_[i - 8].word;
      if (descends || too_many) return other_keys();
    }
    if (projection.digit_[i].low > projection.digit_[i].high) {
      return absl::InvalidArgumentError("a model of the owner has a projection with an empty range");
    }
  }
  if (has_words) {
    projection.words_.resize(reader.GetU8());
    if (projection.words_.size() > static_cast<size_t>(words)) return other_keys();
    for (uint64_t& word : projection.words_) word = reader.GetU64();
  }
  if (!projection.SetScales()) return absl::InvalidArgumentError("a projection of the owner is too wide");
  return projection;
}
#undef GANNET_INSTANTIATE

}  // namespace gannet::index::xstore
