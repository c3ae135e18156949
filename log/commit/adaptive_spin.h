// AdaptiveSpin: waits a short time for another thread that is about to answer, without sleeping. To sleep and to be
// woken takes some tens of microseconds, which is as long as a fast disk needs for a flush.
//
// The processor may be needed elsewhere. So a wait ends when its time is over, or when this thread had lost its
// processor. After two such waits in a row one is left out, then 2, up to 1024. A wait that is answered ends this.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/cache_line.h"
#include "base/clock.h"
#include "base/runtime.h"
#include "base/thread.h"

namespace gannet::log {

// Used by one thread.
class AdaptiveSpin {
 public:
  // False: the next wait is left out. In a simulation, and with a single processor, all are.
  bool is_worthwhile() const { return skips_ == 0; }

  // Waits until answered() or until the time `until_nanos`. Returns the last answered(). Without a wait if it is not
  // worthwhile.
  template <class Answered>
  bool Until(uint64_t until_nanos, const Answered& answered) {
    if (answered()) return true;
    if (skips_ > 0) {
      if (skips_ != kAlways) --skips_;
      return false;
    }
    uint64_t now = NowNanos();
    while (now < until_nanos) {
      for (int i = 0; i < kLooksPerClock; ++i) {
        if (answered()) {
          next_skips_ = 0;
          return true;
        }
        CpuRelax();
      }
      const uint64_t before = std::exchange(now, NowNanos());
      if (now - before > kLostProcessorNanos) break;
    }
    skips_ = next_skips_;
    next_skips_ = std::clamp(2 * next_skips_, 1u, kMostSkips);
    return answered();
  }

 private:
  static constexpr uint32_t kAlways = UINT32_MAX;
  static constexpr uint32_t kMostSkips = 1024;
  static constexpr int kLooksPerClock = 16;
  static constexpr uint64_t kLostProcessorNanos = 50'000;

  // Number of waits to leave out.
  uint32_t skips_ = Runtime::Current() != nullptr || HardwareThreads() == 1 ? kAlways : 0;
  uint32_t next_skips_ = 0;  // waits without a spin after the next spin that fails
};

}  // namespace gannet::log
