
#include <iterator>
#include <string>

#include "bench/json/parts.h"
#include "bench/ycsb/result.h"
#include "rdma/sim/nic_profile.h"

namespace gannet::bench {
namespace {

Json Of(const ycsb::KindReport& k, bool histogram) {
  Json json = {
      {"operations", k.operations}, {"records", k.records}, {"latency_us", LatencyJson(k)}, {"verbs", VerbsJson(k)}};
  if (histogram) json["histogram"] = DistributionJson(k);
  return json;
}

Json StoreOf(const YcsbResult& result) {
  const index::Statistics& i = result.index;
  return {{"keys", i.keys},
          {"nodes", i.nodes},
          {"height", i.height},
          {"registered_bytes", i.registered_bytes},
          {"private_bytes", i.private_bytes},
          {"store_bytes", result.memory.carved_bytes - result.memory.free_bytes},
          {"resident_bytes", result.resident_bytes}};
}

Json Of(const index::XStore::ModelStatistics& m) {
  return {{"sub_models", m.sub_models},        {"table_entries", m.table_entries},
          {"model_bytes", m.model_bytes},      {"leaves_per_lookup", m.leaves_per_lookup},
          {"mean_error_leaves", m.mean_error}, {"mean_error_range", m.mean_range},
          {"generation", m.generation},        {"retrainings", m.retrainings}};
}

Json Of(const index::ClientStatistics& l) {
  return {{"lookups", l.lookups},
          {"one_sided", l.one_sided},
          {"fallbacks", l.fallbacks},
          {"leaves_read", l.leaves_read},
          {"cache_bytes", l.cache_bytes}};
}

}  // namespace

std::vector<std::string> KindNames() {
  return {std::begin(ycsb::kKindNames), std::end(ycsb::kKindNames)};
}

std::string ToJson(const YcsbResult& result, bool histogram) {
  const ycsb::RunReport& run = result.run;
  Json json = {{"operations_per_second", run.operations_per_second},
               {"seconds", run.seconds},
               {"interrupted", result.interrupted},
               {"all", Of(run.all, histogram)}};
  for (size_t k = 0; k < ycsb::kKinds; ++k) json["operations"][ycsb::kKindNames[k]] = Of(run.kinds[k], histogram);
  json["timeline"] = TimelineJson(run.timeline, [](const ycsb::IntervalReport& interval) {
    return Json{{"operations_per_second", interval.Rate(interval.operations)},
                {"operations", KindsJson(interval, KindNames())}};
  });
  if (run.move.has_value()) {
    json["move"] = {{"slices", run.move->slices},
                    {"seconds", run.move->seconds},
                    {"longest_slice_seconds", run.move->longest_slice_seconds}};
  }
  json["clients"] = Of(run.lookups);
  json["paths"] = PathsJson(run.paths);
  json["index"] = StoreOf(result);
  if (result.log.has_value()) {
    json["log"] = {{"writes", result.log->transactions},
                   {"record_bytes", result.log->record_bytes},
                   {"disk_bytes", result.log->disk_bytes},
                   {"batches", result.log->batches}};
  }
  if (result.model.has_value()) json["model"] = Of(*result.model);
  if (result.simulation.has_value()) {
    const SimulationReport& s = *result.simulation;
    json["simulation"] = {{"servers", UsageJson(s.servers)},
                          {"machines", UsageJson(s.machines)},
                          {"nic_source", rdma::sim::FindNicProfile(result.options.nic)->source},
                          {"events", s.events},
                          {"switches", s.switches},
                          {"virtual_seconds", s.virtual_seconds}};
  } else if (result.before_run_calibration.is_measured()) {
    json["calibration"] = CalibrationJson(result.before_run_calibration, result.after_run_calibration);
  }
  json["load_seconds"] = result.load_seconds;
  json["run_seconds"] = result.run_seconds;
  json["configuration"] = result.configuration;
  // Names of files that are not UTF-8 must not stop the report.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace gannet::bench
