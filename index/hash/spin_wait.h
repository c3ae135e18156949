// Waits for a bucket's lock. Its holder is a thread of this process that never waits, so this wait lasts only while the
// holder has no CPU; a holder that never returns is a broken invariant.
#pragma once

#include <cstdint>

#include "base/cache_line.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/thread.h"

namespace gannet::index::hash {

class SpinWait {
 public:
  void Once() {
    if (++rounds_ < kSpins) {
      for (uint32_t i = 0; i < rounds_; ++i) CpuRelax();
    } else {
      Yield();
    }
  }

 private:
  static constexpr uint32_t kSpins = 16;
  static constexpr uint64_t kGiveUpNanos = 60'000'000'000;

  void Yield() {
    YieldThread();
    if (rounds_ == kSpins) since_ = NowNanos();
    if (rounds_ % 4096 != 0) return;
    GANNET_CHECK(NowNanos() - since_ < kGiveUpNanos, "a hash bucket stayed locked for %d s",
                 kGiveUpNanos / 1'000'000'000);
  }

  uint32_t rounds_ = 0;
  uint64_t since_ = 0;
};

}  // namespace gannet::index::hash
