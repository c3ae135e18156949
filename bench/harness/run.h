// RunWorkers: the life of a benchmark's run.
//
//   prepare    every worker opens what it needs; all wait for the last
//   warm-up    operations run and do not count
//   measure    operations count: throughput, latencies, verbs
//   drain      workers finish the operations in flight
//
// The first error of a worker ends the run, in any phase.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "bench/harness/report.h"
#include "bench/harness/worker.h"
#include "rdma/statistics.h"

namespace gannet::bench {

// The options that all benchmarks share.
struct RunOptions {
  absl::Duration warmup = absl::Seconds(1);
  absl::Duration duration = absl::Seconds(10);
  uint64_t at_least = 0;                       // operations: `duration` is extended until this many are done
  absl::Duration interval = absl::Seconds(1);  // between two calls of the progress callback
  uint64_t seed = 1;
  // Set by another thread or a signal handler: the run ends within 100 ms and reports what it measured until then (the
  // measured time is the real one, and may be 0). May be null; must outlive the run.
  const std::atomic<bool>* stop = nullptr;
  // Called when the measured phase begins and when it has ended, on the thread that started the run. May be null.
  std::function<void(bool end)> watch;
};

// InvalidArgument says which of the durations is wrong.
Status CheckDurations(const RunOptions& options);

// An interval with the growth of each live count, summed over the workers, and the latencies of each kind of operation
// that the workers record.
struct CountedInterval : Interval {
  std::array<uint64_t, kLiveCounts> counts{};
};

struct Hooks {
  std::string thread_name;  // of the workers
  // Called on the calling thread after all workers have prepared and before any runs. May be null.
  std::function<void()> prepared;
  // Called on the calling thread after each interval. May be null.
  std::function<void(const CountedInterval& interval)> interval;
  // The measured phase does not end before this is true. Called on the calling thread. May be null.
  std::function<bool()> is_done = nullptr;
};

struct RunResult {
  double seconds = 0;                     // length of the measured phase
  rdma::VerbCounters verbs;               // all verbs of the workers' channels in it
  std::vector<CountedInterval> timeline;  // of the measured phase
};

// Runs each worker on its own thread, and returns when all have closed. The workers share `control`, which is for one
// run.
StatusOr<RunResult> RunWorkers(std::span<Worker* const> workers, RunControl* control, const RunOptions& options,
                               const Hooks& hooks);

}  // namespace gannet::bench
