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
#include <memory>

#include "base/status.h"
#include "bench/harness/live_histogram.h"
#include "bench/harness/run_control.h"
#include "rdma/statistics.h"

namespace gannet::bench {

// Live counts of a worker. Number 0 counts operations; the benchmark defines the others.
inline constexpr size_t kLiveCounts = 4;

class Worker {
 public:
  // `control` must outlive the worker. `kinds`: number of kinds of operation whose latencies are recorded here,
  // the same for all workers of a run.
  explicit Worker(RunControl* control, size_t kinds = 0)
      : control_(control), kinds_(kinds), kind_records_(std::make_unique<KindRecords[]>(kinds)) {}
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
  size_t kinds() const { return kinds_; }
  // Adds the latencies of the operations of this kind that have ended so far, in the warm-up or in the measured phase.
  // Thread-safe.
  void AddLatencies(size_t kind, Histogram* sum) const {
    kind_records_[kind].warmup.AddTo(sum);
    kind_records_[kind].measured.AddTo(sum);
  }
  // Adds only the latencies of the measured phase.
  void AddMeasuredLatencies(size_t kind, Histogram* sum) const { kind_records_[kind].measured.AddTo(sum); }
  // Attempts that met a conflict, in the warm-up or in the measured phase. Thread-safe.
  uint64_t aborts(size_t kind) const { return kind_records_[kind].aborts.load(std::memory_order_relaxed); }

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
  // Records an operation that has ended, after `aborts` attempts that met a conflict. Called only on the worker's
  // thread; takes no lock and allocates nothing. Nothing is recorded in the last phase.
  void RecordOperation(size_t kind, uint64_t nanos, uint64_t aborts) {
    if (seen_ == Phase::kDrain) return;
    KindRecords& records = kind_records_[kind];
    (seen_ == Phase::kWarmup ? records.warmup : records.measured).Record(nanos);
    if (aborts > 0) {
      records.aborts.store(records.aborts.load(std::memory_order_relaxed) + aborts, std::memory_order_relaxed);
    }
  }

 private:
  // Counters of the worker's channel.
  virtual const rdma::VerbCounters& VerbsSoFar() const = 0;
  // Called when the measured phase begins and ends for this worker. Both are called, in this order, even if the run was
  // stopped during the warm-up.
  virtual void MeasurementBegins() {}
  virtual void MeasurementEnds() {}
  void Enter(Phase phase);

  // The counters lie on a cache line of their own, because the driver reads while the worker adds.
  struct alignas(64) LiveCounters {
    std::array<std::atomic<uint64_t>, kLiveCounts> counts{};
  };

  struct KindRecords {
    LiveHistogram warmup;
    LiveHistogram measured;
    std::atomic<uint64_t> aborts{0};
  };

  RunControl* const control_;
  const size_t kinds_;
  const std::unique_ptr<KindRecords[]> kind_records_;
  Phase seen_ = Phase::kWarmup;
  rdma::VerbCounters verbs_at_start_;
  rdma::VerbCounters verbs_;
  LiveCounters live_;
};

}  // namespace gannet::bench
