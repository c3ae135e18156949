#include "bench/json/parts.h"

namespace gannet::bench {
namespace {

// `value` converts a sum of verbs.
template <class Value>
Json Verbs(const rdma::VerbCounters& v, const Value& value) {
  return {
      {"read", value(v.reads)},         {"write", value(v.writes)},        {"cas", value(v.compare_and_swaps)},
      {"faa", value(v.fetch_and_adds)}, {"call", value(v.calls)},          {"bytes", value(v.bytes_in + v.bytes_out)},
      {"bytes_in", value(v.bytes_in)},  {"bytes_out", value(v.bytes_out)}, {"round_trips", value(v.round_trips)},
      {"retries", value(v.retries)}};
}

}  // namespace

Json LatencyJson(const OperationReport& r) {
  return {{"mean", r.mean_us}, {"p50", r.p50_us}, {"p90", r.p90_us},
          {"p95", r.p95_us},   {"p99", r.p99_us}, {"max", r.max_us}};
}

Json KindLatencyJson(const KindInterval& k) {
  return {{"p50", k.p50_us}, {"p95", k.p95_us}, {"p99", k.p99_us}, {"max", k.max_us}};
}

Json DistributionJson(const OperationReport& report) {
  Json json = Json::array();
  for (const LatencyRange& range : report.distribution) {
    json.push_back(Json::array({range.from_us, range.to_us, range.operations}));
  }
  return json;
}

Json KindsJson(const Interval& interval, const std::vector<std::string>& names) {
  Json json = Json::object();
  for (size_t kind = 0; kind < interval.kinds.size(); ++kind) {
    const KindInterval& k = interval.kinds[kind];
    if (k.operations == 0 && k.aborts == 0) continue;
    json[names[kind]] = {{"finished", k.operations}, {"aborted", k.aborts}, {"latency_us", KindLatencyJson(k)}};
  }
  return json;
}

Json VerbsJson(const OperationReport& report) {
  Json json = Verbs(report.verbs, [&report](uint64_t sum) { return report.PerOperation(sum); });
  json["samples"] = report.verb_samples;
  return json;
}

Json VerbSumsJson(const rdma::VerbCounters& verbs) {
  return Verbs(verbs, [](uint64_t sum) { return sum; });
}

Json PathsJson(const std::vector<txn::TablePaths>& paths) {
  constexpr double kMicrosPerNano = 1e-3;
  Json json = Json::array();
  for (const txn::TablePaths& each : paths) {
    const txn::PathStatistics& p = each.paths;
    json.push_back({{"table", each.table},
                    {"kind", txn::kAccessKindNames[static_cast<size_t>(each.kind)]},
                    {"one_sided", p.one_sided},
                    {"calls", p.calls},
                    {"backed_off", p.backed_off},
                    {"estimated", p.estimated},
                    {"one_sided_estimate_us", p.one_sided_estimate() * kMicrosPerNano},
                    {"call_estimate_us", p.call_estimate() * kMicrosPerNano},
                    {"contrary", p.contrary},
                    {"contrary_cost_us", p.contrary_cost() * kMicrosPerNano}});
  }
  return json;
}

Json UsageJson(const Usage& u) {
  return {{"cpu", u.cpu},
          {"nic_send", u.nic_send},
          {"nic_serve", u.nic_serve},
          {"link_out", u.link_out},
          {"link_in", u.link_in}};
}

Json CalibrationJson(const Calibration& before_run, const Calibration& after_run) {
  return {{"dependent_read_ns_before_run", before_run.dependent_read_ns},
          {"dependent_read_ns_after_run", after_run.dependent_read_ns},
          {"buffer_bytes", before_run.buffer_bytes}};
}

}  // namespace gannet::bench
