// How much later than usual a round trip over the wire ends: the tail that real cards, switches and CPUs have.
#pragma once

#include <cstdint>
#include <span>

namespace gannet::rdma::sim {

// A share `share` of the round trips takes at most `nanos` more than the median.
struct SpreadPoint {
  double share;
  uint64_t nanos;
};

// The points in ascending order; the last one is the largest delay. Source: RAMCloud's clusterperf of 24 November 2018
// (docs/references.md), calls that echo 100 bytes, 1 KB and 10 KB over InfiniBand: how far their 90%, 99% and 99.9%
// quantiles are above their medians, on average. No published quantiles of one-sided verbs were found, so these have
// the same. Those of a card alone would be lower.
std::span<const SpreadPoint> SpreadPoints();

// The delay of the round trip whose luck is `random`, a uniform 64-bit number: between two points of the distribution
// it is uniform. Round trips below the median take as long as the median.
uint64_t SpreadNanos(uint64_t random);

}  // namespace gannet::rdma::sim
