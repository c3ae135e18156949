// RunBenchmark: client threads that run a mix of operations against a cluster, and measure them.
//
// Every machine has the same number of threads, each with a connection and a number of coroutines; a coroutine runs one
// operation after the other. Every value that is read is checked against its key: a wrong value ends the run with
// DataLoss.
//
//   prepare    every thread opens its connection and, if requested, fills its index cache
//   warm-up    not measured
//   measure    throughput, latencies, verbs
//   profile    only with several coroutines per thread: some more operations, one at a time in each thread, to measure
//              the verbs of each kind of operation
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "absl/time/time.h"
#include "base/status.h"
#include "ycsb/client.h"
#include "ycsb/cluster.h"
#include "ycsb/connection.h"
#include "ycsb/report.h"
#include "ycsb/workload.h"

namespace gannet::ycsb {

struct RunOptions {
  int threads_per_machine = 1;
  int coroutines = 1;  // per thread
  Mix mix = kWorkloads[2].mix;
  Distribution distribution = Distribution::kUniform;
  // If not 0: the last machine does not run the mix, but inserts this many keys per second, or as many as it can. Needs
  // at least two machines.
  uint64_t insert_rate = 0;
  absl::Duration insert_for = absl::InfiniteDuration();  // of the measured window; then none
  Paths paths;
  CacheOptions caches;
  bool fill_caches = true;  // XStore's, before the warm-up
  absl::Duration warmup = absl::Seconds(1);
  absl::Duration duration = absl::Seconds(10);
  uint64_t at_least = 0;                       // operations: `duration` is extended until this many are done
  absl::Duration interval = absl::Seconds(1);  // between two calls of the progress callback
  uint64_t seed = 1;
  // Set by another thread or a signal handler: the run ends early and reports what it has measured; Cancelled if it was
  // still filling its caches. May be null.
  const std::atomic<bool>* stop = nullptr;
  // Called at the beginning and at the end of the measured window, on the thread that called RunBenchmark. May be null.
  std::function<void(bool end)> watch;
};

// Called on the thread that called RunBenchmark.
using RunProgress = std::function<void(const IntervalReport&)>;

// Runs on a loaded and started cluster; one run at a time. `progress` may be null. InvalidArgument says which option is
// wrong.
StatusOr<RunReport> RunBenchmark(Cluster* cluster, const RunOptions& options, const RunProgress& progress);

}  // namespace gannet::ycsb
