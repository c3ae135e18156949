// RunControl: the state that a benchmark's driver and its workers share: the phase of the run and the first error.
//
//   control.Advance(Phase::kMeasure);                             // the driver
//   while (control.phase() != Phase::kDrain) ...                  // a worker
//   WaitWhileRunning(NowNanos() + nanos, [&] { return ended; });  // the driver, between two phases
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "base/thread.h"

namespace gannet::bench {

enum class Phase : int {
  kWarmup,
  kMeasure,  // operations that end now count
  kDrain,    // nothing new begins; workers finish the operations in flight
};

// Thread-safe.
class RunControl {
 public:
  Phase phase() const { return phase_.load(std::memory_order_acquire); }
  // Never goes back; after a failure it stays kDrain.
  void Advance(Phase phase) {
    const std::lock_guard lock(mutex_);
    if (phase > phase_.load(std::memory_order_relaxed)) phase_.store(phase, std::memory_order_release);
  }
  // The first error is kept and ends the run.
  void Fail(Status status) {
    const std::lock_guard lock(mutex_);
    error_.Update(std::move(status));
    phase_.store(Phase::kDrain, std::memory_order_release);
  }
  Status error() const {
    const std::lock_guard lock(mutex_);
    return error_;
  }

 private:
  std::atomic<Phase> phase_{Phase::kWarmup};
  mutable Mutex mutex_;
  Status error_;
};

// Blocks the thread until `until_nanos` (of NowNanos) or until `ended()` is true. It calls `ended` often.
template <class Ended>
void WaitWhileRunning(uint64_t until_nanos, const Ended& ended) {
  constexpr uint64_t kSliceNanos = 10'000'000;
  for (uint64_t now = NowNanos(); now < until_nanos && !ended(); now = NowNanos()) {
    SleepForNanos(std::min(kSliceNanos, until_nanos - now));
  }
}

}  // namespace gannet::bench
