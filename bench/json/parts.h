// The parts that the JSON reports of all benchmarks share. Keys are stable.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench/harness/calibration.h"
#include "bench/harness/rack_usage.h"
#include "bench/harness/report.h"
#include "nlohmann/json.hpp"
#include "rdma/statistics.h"
#include "txn/store/statistics.h"

namespace gannet::bench {

using Json = nlohmann::ordered_json;

// {"mean", "p50", "p90", "p95", "p99", "max"}, in microseconds.
Json LatencyJson(const OperationReport& report);
// {"p50", "p95", "p99", "max"}.
Json KindLatencyJson(const KindInterval& kind);

// The verbs of one operation on average, and "samples".
Json VerbsJson(const OperationReport& report);
// The keys of VerbsJson except "samples", with sums.
Json VerbSumsJson(const rdma::VerbCounters& verbs);

// An array with an object for each table and kind of access to records of other nodes. Estimates and costs are averages
// in microseconds.
Json PathsJson(const std::vector<txn::TablePaths>& paths);

// An array of [from_us, to_us, operations].
Json DistributionJson(const OperationReport& report);

// An object with the kinds that had an operation or a conflict in the interval, by name: "finished", "aborted" and
// "latency_us" with "p50", "p95", "p99" and "max". `names`: of interval.kinds.
Json KindsJson(const Interval& interval, const std::vector<std::string>& names);

Json UsageJson(const Usage& usage);

Json CalibrationJson(const Calibration& before_run, const Calibration& after_run);

// An array with an object for each interval: "at_seconds", "seconds" (its length), "latency_us" of all kinds together,
// and the keys of `rates(interval)`, which returns an object.
template <class IntervalReport, class Rates>
Json TimelineJson(const std::vector<IntervalReport>& timeline, const Rates& rates) {
  Json json = Json::array();
  for (const IntervalReport& interval : timeline) {
    Json moment = {{"at_seconds", interval.at_seconds}, {"seconds", interval.seconds}};
    moment.update(rates(interval));
    moment["latency_us"] = KindLatencyJson(interval.all);
    json.push_back(std::move(moment));
  }
  return json;
}

}  // namespace gannet::bench
