#include "bench/harness/operation_statistics.h"

namespace gannet::bench {
namespace {

constexpr double kNanosPerMicro = 1000;

double Micros(uint64_t nanos) {
  return static_cast<double>(nanos) / kNanosPerMicro;
}

}  // namespace

void SetLatencies(const Histogram& latency, OperationReport* report) {
  report->mean_us = latency.mean() / kNanosPerMicro;
  report->p50_us = Micros(latency.Percentile(50));
  report->p90_us = Micros(latency.Percentile(90));
  report->p95_us = Micros(latency.Percentile(95));
  report->p99_us = Micros(latency.Percentile(99));
  report->max_us = Micros(latency.max());
  report->distribution.clear();
  latency.ForEachRange([report](uint64_t low, uint64_t high, uint64_t count) {
    report->distribution.push_back({Micros(low), Micros(high), count});
  });
}

KindInterval KindIntervalOf(const Histogram& latency) {
  return {.operations = latency.count(),
          .aborts = 0,
          .p50_us = Micros(latency.Percentile(50)),
          .p95_us = Micros(latency.Percentile(95)),
          .p99_us = Micros(latency.Percentile(99)),
          .max_us = Micros(latency.max())};
}

}  // namespace gannet::bench
