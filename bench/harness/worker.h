// Worker: one thread of a benchmark. A benchmark derives its own, which runs its operations in coroutines; run.h drives
// them.
//
// The worker counts an operation when it ends, and only in the measured phase. It calls ObservePhase() before it
// counts. There the measured phase begins and ends for it, between two of its operations. So its verbs are those of the
// operations that it counted, and of those in flight at both ends.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "bench/harness/run_control.h"
#include "rdma/counters.h"

namespace gannet::bench {

// Live counts of a worker. Number 0 counts operations; the benchmark defines the others.
inline constexpr size_t kLiveCounts = 4;

class Worker {
 public:
  // `control` must outlive the worker.
  explicit Worker(RunControl* control) : control_(control) {}
  virtual ~Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // The life of the thread, in steps: all workers have prepared before any runs. An error ends the run.
  virtual Status Prepare() = 0;
  // Works until the phase is kDrain, and then finishes the operations in flight. Not called if Prepare failed.
  virtual Status Run() = 0;
  // Releases what belongs to the thread. Called always, and last.
  virtual void Close() = 0;

  // The count so far, over all phases. Thread-safe.
  uint64_t live(size_t count) const { return live_.counts[count].load(std::memory_order_relaxed); }
  // All verbs of the worker's channel in the measured phase. Valid after Run.
  const rdma::VerbCounters& verbs() const { return verbs_; }

 protected:
  RunControl& control() const { return *control_; }
  // The phase that ObservePhase saw last.
  Phase seen() const { return seen_; }
  // Notices that the phase has changed.
  void ObservePhase() {
    const Phase phase = control_->phase();
    if (phase != seen_) [[unlikely]]
      Enter(phase);
  }
  // Adds to a live count. Called only on the worker's thread.
  void CountLive(size_t count, uint64_t n) {
    std::atomic<uint64_t>& value = live_.counts[count];
    value.store(value.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

 private:
  // Counters of the worker's channel.
  virtual const rdma::VerbCounters& VerbsSoFar() const = 0;
  // Called when the measured phase begins and ends for this worker. Both are called, in this order, even if the run was
  // stopped during the warm-up.
  virtual void MeasurementBegins() {}
  virtual void MeasurementEnds() {}
  void Enter(Phase phase);

  // On a cache line of their own, because the driver reads while the worker adds.
  struct alignas(64) LiveCounters {
    std::array<std::atomic<uint64_t>, kLiveCounts> counts{};
  };

  RunControl* const control_;
  Phase seen_ = Phase::kWarmup;
  rdma::VerbCounters verbs_at_start_;
  rdma::VerbCounters verbs_;
  LiveCounters live_;
};

}  // namespace gannet::bench
