// The time series of a benchmark's run as CSV (RFC 4180).
#pragma once

#include <string>
#include <vector>

#include "bench/harness/report.h"

namespace gannet::cli {

// A line of names, then for each interval one line per kind that had an operation in the run, and one for "all" kinds
// together. `names`: of Interval::kinds.
std::string TimeSeriesCsv(const std::vector<bench::Interval>& timeline, const std::vector<std::string>& names);

}  // namespace gannet::cli
