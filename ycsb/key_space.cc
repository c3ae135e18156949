#include "ycsb/key_space.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "base/random.h"
#include "ycsb/normal_quantile.h"

namespace gannet::ycsb {
namespace {

constexpr uint64_t kEqualGap = uint64_t{1} << 20;
constexpr uint64_t kMapWidth = uint64_t{1} << 60;
constexpr int kMaxLevels = 16;
// After the last halving a part has at least 2^kKeysOfPartBits keys, which share it equally.
constexpr int kKeysOfPartBits = 7;
// The narrowest part, (1/5)^16 of the map, has room for 2^kKeysOfPartBits + 1 keys (with more parts, there are fewer
// levels), and for at least kLeastGap inserted keys around each of them.
constexpr uint64_t kLeastGap = 1 << 10;
// Bounds the keys that are appended, kEqualGap apart: all others are below 2^63.
constexpr uint64_t kMostInserts = uint64_t{1} << 40;

// Quantiles of fewer than 2^32 keys are less than 6.4 standard deviations from the mean. So normal keys lie in
// (2^59, 2^63), and lognormal ones below 2^44 e^12.8 < 2^63. The distance of neighbours is least where the density is
// greatest: 2.5 2^59 / keys at the mean of the normal distribution, and 2^44 / (1.48 keys) at e^-4 of the median of the
// lognormal one. Both are more than 2 kLeastGap.
constexpr uint64_t kNormalMean = uint64_t{1} << 62;
constexpr double kNormalDeviation = 0x1p59;
constexpr double kLognormalMedian = 0x1p44;
constexpr double kLognormalSigma = 2;

// A part of two or more random keys gets at least a third of its average share. So the six last halvings leave a key at
// least 3^-6 of its average width, and the ones before them, of at least 64 keys, a fifth of that: of 2^60 / 2^32 this
// is more than 2^16.
constexpr double kMostOfMean = 3;

// Four times 16 random bits, as a number of mean 0 and variance 1 between -3.47 and 3.47.
double BellCurve(uint64_t random) {
  double sum = 0;
  for (int shift = 0; shift < 64; shift += 16) sum += static_cast<double>(random >> shift & 0xffff) * 0x1p-16;
  return (sum - 2) * 1.7320508075688772;  // the square root of 3
}

}  // namespace

KeySpace::KeySpace(KeyForm form, uint64_t loaded, int servers)
    : form_(form),
      loaded_(loaded),
      servers_(servers),
      levels_(std::clamp(static_cast<int>(std::bit_width(loaded)) - 1 - kKeysOfPartBits, 0, kMaxLevels)),
      scatter_(loaded) {
  GANNET_CHECK(loaded > 0 && loaded < uint64_t{1} << 32 && servers > 0, "%d keys on %d servers", loaded, servers);
}

KeySpace::Stretch KeySpace::StretchOf(uint64_t rank) const {
  switch (form_) {
    case KeyForm::kLinear:
    case KeyForm::kNoised:
      break;
    case KeyForm::kOsmLike:
      return OsmLikeStretchOf(rank);
    case KeyForm::kRandom:
      return RandomStretchOf(rank);
    case KeyForm::kNormal:
    case KeyForm::kLognormal: {
      const uint64_t base = QuantileOf(rank);
      return {base, QuantileOf(rank + 1) - base};
    }
  }
  return {rank * kEqualGap, kEqualGap};
}

uint64_t KeySpace::QuantileOf(uint64_t rank) const {
  const double z = NormalQuantile((static_cast<double>(rank) + 0.5) / (static_cast<double>(loaded_) + 1));
  if (form_ == KeyForm::kLognormal) return static_cast<uint64_t>(PortableExp(kLognormalSigma * z) * kLognormalMedian);
  return kNormalMean + static_cast<uint64_t>(static_cast<int64_t>(z * kNormalDeviation));
}

KeySpace::Stretch KeySpace::OsmLikeStretchOf(uint64_t rank) const {
  uint64_t first = 0;
  uint64_t keys = loaded_;
  uint64_t base = 0;
  uint64_t width = kMapWidth;
  uint64_t part = 1;  // number of the part in a heap of halves
  for (int level = 0; level < levels_; ++level) {
    // The share in 1024ths, from 1/5 to 4/5.
    const uint64_t share = 205 + Mix64(part) % 615;
    const uint64_t left_keys = keys / 2;
    const uint64_t left_width = (width >> 10) * share;
    if (rank - first < left_keys) {
      keys = left_keys;
      width = left_width;
      part = 2 * part;
    } else {
      first += left_keys;
      keys -= left_keys;
      base += left_width;
      width -= left_width;
      part = 2 * part + 1;
    }
  }
  const uint64_t gap = width / keys;
  return {base + (rank - first) * gap, gap};
}

// The k-th of n draws lies, as a share of the width, at k / n on average, with a variance of k (n - k) / n^2 / (n + 1).
// (It has a beta distribution; here it has the same moments, and no tails.)
KeySpace::Stretch KeySpace::RandomStretchOf(uint64_t rank) const {
  uint64_t first = 0;
  uint64_t keys = loaded_;
  Stretch stretch = {0, kMapWidth};
  uint64_t part = 1;  // number of the part in a heap of halves
  while (keys > 1) {
    const uint64_t left_keys = keys / 2;
    const auto n = static_cast<double>(keys);
    const double mean = static_cast<double>(left_keys) / n;
    const double deviation = std::sqrt(mean * (1 - mean) / (n + 1));
    const double share =
        std::clamp(mean + deviation * BellCurve(Mix64(part)), mean / kMostOfMean, 1 - mean / kMostOfMean);
    const auto left_width = static_cast<uint64_t>(static_cast<double>(stretch.gap) * share);
    if (rank - first < left_keys) {
      keys = left_keys;
      stretch.gap = left_width;
      part = 2 * part;
    } else {
      first += left_keys;
      keys -= left_keys;
      stretch = {stretch.base + left_width, stretch.gap - left_width};
      part = 2 * part + 1;
    }
  }
  return stretch;
}

uint64_t KeySpace::LoadedKey(uint64_t rank) const {
  const Stretch stretch = StretchOf(rank);
  return form_ == KeyForm::kLinear ? stretch.base : stretch.base + Mix64(rank) % (stretch.gap / 2);
}

uint64_t KeySpace::max_inserts() const {
  const bool equal = form_ == KeyForm::kLinear || form_ == KeyForm::kNoised;
  return std::min(loaded_ * (equal ? kEqualGap : kLeastGap) / 2, kMostInserts);
}

uint64_t KeySpace::InsertedKey(uint64_t n, InsertPlace place) const {
  GANNET_CHECK(n < max_inserts(), "insert number %d into a key space with room for %d", n, max_inserts());
  if (place == InsertPlace::kAppend) {
    const Stretch last = StretchOf(loaded_ - 1);
    return last.base + last.gap + n * kEqualGap;
  }
  if (place == InsertPlace::kRandom) return Permutation(kMapWidth)(n);
  const Stretch stretch = StretchOf(RankOfInsert(n));
  return stretch.base + stretch.gap / 2 + n / loaded_;
}

rdma::NodeId KeySpace::OwnerOf(uint64_t key) const {
  int server = 0;
  while (server + 1 < servers_ && StretchOf(FirstRankOf(server + 1)).base <= key) ++server;
  return static_cast<rdma::NodeId>(server);
}

}  // namespace gannet::ycsb
