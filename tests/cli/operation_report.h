// A report on operations that took the given times.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/harness/histogram.h"
#include "bench/harness/operation_statistics.h"

namespace gannet::cli {

inline bench::OperationReport ReportOf(const std::vector<uint64_t>& nanos) {
  bench::Histogram histogram;
  for (const uint64_t each : nanos) histogram.Record(each);
  bench::OperationReport report;
  bench::SetLatencies(histogram, &report);
  return report;
}

}  // namespace gannet::cli
