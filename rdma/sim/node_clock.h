// A node's clock: virtual time with a constant skew and a small drift.
#pragma once

#include <cstdint>

#include "base/random.h"
#include "rdma/sim/faults.h"

namespace gannet::rdma::sim {

class NodeClock {
 public:
  NodeClock() = default;
  NodeClock(const Faults& faults, Random random) {
    if (faults.clock_skew_nanos > 0) skew_ = random.Between(-faults.clock_skew_nanos, faults.clock_skew_nanos);
    const auto most = static_cast<int64_t>(faults.clock_drift * static_cast<double>(kOne));
    if (most > 0) drift_ = random.Between(-most, most);
  }

  // The result may be negative.
  int64_t FromVirtual(uint64_t time) const {
    return static_cast<int64_t>(time) + skew_ + static_cast<int64_t>(static_cast<__int128>(time) * drift_ / kOne);
  }
  // The earliest virtual time at which this clock shows `shown`.
  uint64_t ToVirtual(int64_t shown) const {
    if (skew_ == 0 && drift_ == 0) return shown < 0 ? 0 : static_cast<uint64_t>(shown);
    const __int128 time = (static_cast<__int128>(shown) - skew_) * kOne / (kOne + drift_) + 2;
    return time < 0 ? 0 : static_cast<uint64_t>(time);
  }

 private:
  static constexpr int64_t kOne = int64_t{1} << 30;

  int64_t skew_ = 0;
  int64_t drift_ = 0;  // in units of 1 / kOne
};

}  // namespace gannet::rdma::sim
