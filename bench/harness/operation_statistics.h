// A worker's records of one kind of operation, and their conversion to an OperationReport.
#pragma once

#include "bench/harness/histogram.h"
#include "bench/harness/report.h"
#include "rdma/counters.h"

namespace gannet::bench {

// Written by one worker; merged after the run. Not thread-safe.
struct OperationStatistics {
  Histogram latency;
  rdma::VerbCounters verbs;
  uint64_t verb_samples = 0;

  // `done`: the verbs of one operation.
  void SampleVerbs(const rdma::VerbCounters& done) {
    verbs += done;
    ++verb_samples;
  }
  void Merge(const OperationStatistics& other) {
    latency.Merge(other.latency);
    verbs += other.verbs;
    verb_samples += other.verb_samples;
  }
};

inline void SetLatencies(const Histogram& latency, OperationReport* report) {
  constexpr double kNanosPerMicro = 1000;
  const auto micros = [](uint64_t nanos) { return static_cast<double>(nanos) / kNanosPerMicro; };
  report->mean_us = latency.mean() / kNanosPerMicro;
  report->p50_us = micros(latency.Percentile(50));
  report->p90_us = micros(latency.Percentile(90));
  report->p99_us = micros(latency.Percentile(99));
  report->max_us = micros(latency.max());
}

inline void Summarize(const OperationStatistics& statistics, OperationReport* report) {
  SetLatencies(statistics.latency, report);
  report->verbs = statistics.verbs;
  report->verb_samples = statistics.verb_samples;
}

}  // namespace gannet::bench
