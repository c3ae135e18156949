#include "rdma/sim/spread.h"

#include <cstddef>
#include <iterator>

namespace gannet::rdma::sim {
namespace {

constexpr SpreadPoint kPoints[] = {{0.5, 0}, {0.9, 700}, {0.99, 1'600}, {0.999, 5'000}};

}  // namespace

std::span<const SpreadPoint> SpreadPoints() {
  return kPoints;
}

uint64_t SpreadNanos(uint64_t random) {
  const double share = static_cast<double>(random >> 11) * 0x1.0p-53;
  if (share < kPoints[0].share) return kPoints[0].nanos;
  for (size_t i = 1; i < std::size(kPoints); ++i) {
    const SpreadPoint& below = kPoints[i - 1];
    const SpreadPoint& above = kPoints[i];
    if (share >= above.share) continue;
    const double part = (share - below.share) / (above.share - below.share);
    return below.nanos + static_cast<uint64_t>(part * static_cast<double>(above.nanos - below.nanos));
  }
  return kPoints[std::size(kPoints) - 1].nanos;
}

}  // namespace gannet::rdma::sim
