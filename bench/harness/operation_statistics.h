// A worker's samples of the verbs of one kind of operation, and their conversion to an OperationReport. Latencies lie
// in the worker's live histograms (worker.h).
#pragma once

#include "bench/harness/histogram.h"
#include "bench/harness/report.h"
#include "rdma/statistics.h"

namespace gannet::bench {

// One worker writes it; it is merged after the run. Not thread-safe.
struct OperationStatistics {
  rdma::VerbCounters verbs;
  uint64_t verb_samples = 0;

  // `done`: the verbs of one operation.
  void SampleVerbs(const rdma::VerbCounters& done) {
    verbs += done;
    ++verb_samples;
  }
  void Merge(const OperationStatistics& other) {
    verbs += other.verbs;
    verb_samples += other.verb_samples;
  }
};

// Sets the latencies and their distribution.
void SetLatencies(const Histogram& latency, OperationReport* report);

inline void Summarize(const OperationStatistics& statistics, const Histogram& latency, OperationReport* report) {
  SetLatencies(latency, report);
  report->verbs = statistics.verbs;
  report->verb_samples = statistics.verb_samples;
}

// The latencies of one kind of operation in an interval.
KindInterval KindIntervalOf(const Histogram& latency);

}  // namespace gannet::bench
