// The parts that the reports of all benchmarks share. Plain data. Times are the fabric's: real on shm and verbs,
// virtual in a simulation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "rdma/statistics.h"

namespace gannet::bench {

// The number of operations whose latency was in [from_us, to_us).
struct LatencyRange {
  double from_us = 0;
  double to_us = 0;
  uint64_t operations = 0;
};

// One kind of operation, or all of them, over the measured phase.
struct OperationReport {
  // Latencies in microseconds. Percentiles are exact within 1%, the maximum exactly. All 0 if nothing was measured.
  double mean_us = 0;
  double p50_us = 0;
  double p90_us = 0;
  double p95_us = 0;
  double p99_us = 0;
  double max_us = 0;
  std::vector<LatencyRange> distribution;  // ascending, without empty ranges

  // Sum over `verb_samples` operations; nothing else ran on their channels during them. Divide for the average of one.
  rdma::VerbCounters verbs;
  uint64_t verb_samples = 0;

  // `sum` (of `verbs`) for one operation on average; 0 if there is no sample.
  double PerOperation(uint64_t sum) const {
    return verb_samples == 0 ? 0.0 : static_cast<double>(sum) / static_cast<double>(verb_samples);
  }
};

// One kind of operation, or all of them, in an interval of a run: those that ended in it. Percentiles are within 1%;
// all are 0 if there was no operation.
struct KindInterval {
  uint64_t operations = 0;
  uint64_t aborts = 0;  // attempts that met a conflict and were run again; 0 where there are no transactions
  double p50_us = 0;
  double p95_us = 0;
  double p99_us = 0;
  double max_us = 0;
};

// A piece of a run's time, as long as RunOptions::interval or shorter.
struct Interval {
  bool warming_up = false;          // it ended before the measured phase began
  double at_seconds = 0;            // its end, from the start of the warm-up
  double seconds = 0;               // its length
  std::vector<KindInterval> kinds;  // by the kinds of the benchmark; empty if it measures none
  KindInterval all;

  // `count` per second of the interval.
  double Rate(uint64_t count) const { return static_cast<double>(count) / std::max(seconds, 1e-9); }
};

}  // namespace gannet::bench
