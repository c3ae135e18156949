// RunBenchmark: client threads that run a mix of operations against a cluster, and measure them.
//
// Every machine has the same number of threads, each with a connection and a number of coroutines; a coroutine runs one
// operation after the other. Every value that is read is checked against its key: a wrong value ends the run with
// DataLoss.
//
// The phases are those of bench/harness/run.h. In the first, every thread opens its connection and, if requested, fills
// its index cache. In the last, a thread with several coroutines runs some more operations, one at a time, to measure
// the verbs of each kind of operation.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/time/time.h"
#include "base/status.h"
#include "bench/harness/run.h"
#include "ycsb/client.h"
#include "ycsb/cluster.h"
#include "ycsb/connection.h"
#include "ycsb/report.h"
#include "ycsb/workload.h"
#include "ycsb/zipf.h"

namespace gannet::ycsb {

struct RunOptions : bench::RunOptions {
  int threads_per_machine = 1;
  int coroutines = 1;  // per thread
  Mix mix = kWorkloads[2].mix;
  Distribution distribution = Distribution::kUniform;
  double theta = kYcsbTheta;  // of kZipfian and kLatest
  InsertPlace inserts = InsertPlace::kSpread;
  // If this is not 0, the last machine does not run the mix, but inserts this many keys per second, or as many as it
  // can. Needs at least two machines; or servers in other processes, beside which this process only inserts.
  uint64_t insert_rate = 0;
  absl::Duration insert_for = absl::InfiniteDuration();  // of the measured window; then none
  Paths paths;
  CacheOptions caches;
  bool fill_caches = true;  // XStore's, before the warm-up
  // If it is finite, the last machine has no keys at first, and so long after the beginning of the measured phase, the
  // one before it gives it half of its part (moving_part.h). The measured phase lasts until they have moved, too.
  // Needs partitioned keys, and clients of one coroutine that only read and update.
  absl::Duration move_after = absl::InfiniteDuration();

  bool moves() const { return move_after < absl::InfiniteDuration(); }
};

// Called on the thread that called RunBenchmark.
using RunProgress = std::function<void(const IntervalReport&)>;

// Runs on a loaded and started cluster; one run at a time. `progress` may be null. InvalidArgument says which option is
// wrong. Cancelled if *stop became true while caches were still being filled.
StatusOr<RunReport> RunBenchmark(Cluster* cluster, const RunOptions& options, const RunProgress& progress);

}  // namespace gannet::ycsb
