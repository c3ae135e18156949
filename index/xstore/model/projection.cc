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

template <int W>
Projection Projection::Learner<W>::Learn() const {
  Projection packed;
  // Takes as many leading bytes as fit. The last ones need no room for growth; they only separate equal prefixes.
  for (int i = 0; i < W * 8; ++i) {
    Projection longer = packed;
    longer.digit_[longer.digits_++] = {low_[i], static_cast<uint8_t>(WithRoom(low_[i], high_[i])), 0};
    if (low_[i] > high_[i] || !longer.SetScales()) break;
    packed = longer;
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
  writer.PutU8(static_cast<uint8_t>(digits_));
  for (int i = 0; i < digits_; ++i) {
    writer.PutU8(digit_[i].low);
    writer.PutU8(digit_[i].high);
  }
}

StatusOr<Projection> Projection::Decode(rdma::WireReader& reader, int words) {
  Projection projection;
  const int digits = reader.GetU8();
  if (digits > std::min(kMaxDigits, words * 8)) {
    return absl::InvalidArgumentError("a model of the owner has a projection for other keys");
  }
  projection.digits_ = digits;
  for (int i = 0; i < digits; ++i) {
    projection.digit_[i].low = reader.GetU8();
    projection.digit_[i].high = reader.GetU8();
    if (projection.digit_[i].low > projection.digit_[i].high) {
      return absl::InvalidArgumentError("a model of the owner has a projection with an empty range");
    }
  }
  if (!projection.SetScales()) return absl::InvalidArgumentError("a projection of the owner is too wide");
  return projection;
}

}  // namespace gannet::index::xstore
