// The report as JSON. Keys are stable; see docs/commands.md.
#include <iterator>
#include <string>

#include "bench/json/parts.h"
#include "cli/common/json_text.h"
#include "cli/common/parse.h"
#include "cli/report/bench_flags.h"
#include "cli/tpcc/flags.h"
#include "cli/tpcc/result.h"

namespace gannet::cli {
namespace {

using bench::Json;

double PerOne(uint64_t sum, uint64_t count) {
  return count == 0 ? 0.0 : static_cast<double>(sum) / static_cast<double>(count);
}

Json Of(const tpcc::ProcedureReport& p, bool histogram) {
  Json json = {{"committed", p.committed},
               {"aborted", p.aborted},
               {"rolled_back", p.rolled_back},
               {"latency_us", bench::LatencyJson(p)},
               {"verbs", bench::VerbsJson(p)}};
  if (histogram) json["histogram"] = bench::DistributionJson(p);
  return json;
}

Json Of(const MemoryReport& memory) {
  Json tables = Json::array();
  for (const txn::TableStatistics& t : memory.tables) {
    tables.push_back({{"table", t.table},
                      {"index", t.index_kind},
                      {"rows", t.index.keys},
                      {"record_bytes", t.record_bytes},
                      {"index_registered_bytes", t.index.registered_bytes},
                      {"index_private_bytes", t.index.private_bytes},
                      {"index_nodes", t.index.nodes},
                      {"index_height", t.index.height}});
  }
  return {{"tables", std::move(tables)},
          {"registered_capacity_bytes", memory.heap.capacity_bytes},
          {"registered_bytes", memory.heap.carved_bytes},
          {"registered_free_bytes", memory.heap.free_bytes},
          {"resident_bytes", memory.resident_bytes}};
}

Json OfCaches(const TpccResult& result) {
  Json json = Json::object();
  for (const auto& [table, statistics] : result.run->client_caches) {
    json[table] = {{"bytes", statistics.cache_bytes},
                   {"lookups", statistics.lookups},
                   {"one_sided", statistics.one_sided},
                   {"fallbacks", statistics.fallbacks},
                   {"leaves_read", statistics.leaves_read}};
  }
  return json;
}

// The flags of every verb, because keys are stable.
Json ValuesOf(TpccOptions options, Marks with, Marks without) {
  options.verb = TpccVerb::kRun;
  return TpccFlags(&options).Values(with, without);
}

Json Of(const txn::RecoveryReport& r) {
  return {{"recovered_epoch", r.recovered_epoch},
          {"last_commit_wall_nanos", r.last_commit_wall_nanos},
          {"log_segments", r.log_segments},
          {"log_bytes", r.log_bytes},
          {"transactions", r.transactions},
          {"changes", r.changes},
          {"undone_transactions", r.undone_transactions},
          {"undecided_parts", r.undecided_parts},
          {"checkpoint", r.checkpoint_id},
          {"checkpoint_bytes", r.checkpoint_bytes},
          {"older_checkpoint", r.older_checkpoint_id},
          {"replaced", r.replaced},
          {"records", r.records},
          {"log_seconds", r.log_seconds},
          {"load_seconds", r.load_seconds},
          {"peak_memory_bytes", r.peak_memory_bytes},
          {"torn_tail", r.torn_tail},
          {"damages", r.damages}};
}

Json Of(const DurabilityReport& d, const TpccOptions& o) {
  Json json = {{"mode", FormatDurability(o.database.durability)}, {"log", d.log_description}};
  json.update(ValuesOf(o, kWithDurability, 0));
  json.update({{"checkpoints", d.checkpoints},
               {"batches", d.log.batches},
               {"transactions_logged", d.log.transactions},
               {"transactions", d.transactions},
               {"new_orders", d.new_orders},
               {"payload_bytes", d.log.payload_bytes},
               {"log_bytes", d.log.record_bytes},
               {"disk_bytes", d.log.disk_bytes},
               {"failures", d.log.failures},
               {"log_bytes_per_transaction", PerOne(d.log.record_bytes, d.log.transactions)},
               {"log_bytes_per_new_order", d.bytes_per_new_order()},
               {"payload_bytes_per_new_order", d.payload_per_new_order()},
               {"overhead", d.overhead()},
               {"write_amplification", d.write_amplification()},
               {"close_seconds", d.close_seconds},
               {"recovery", Json::array()}});
  for (const txn::RecoveryReport& recovery : d.recovery) json["recovery"].push_back(Of(recovery));
  return json;
}

void AddRun(const TpccResult& result, Json* json) {
  const tpcc::RunReport& run = *result.run;
  (*json)["transactions_per_second"] = run.transactions_per_second;
  (*json)["new_orders_per_minute"] = run.new_orders_per_minute;
  (*json)["seconds"] = run.seconds;
  (*json)["interrupted"] = result.interrupted;
  const bool histogram = result.options.report.histogram;
  Json& transactions = (*json)["transactions"] = Json::object();
  for (size_t i = 0; i < run.procedures.size(); ++i) {
    transactions[tpcc::kProcedureNames[i]] = Of(run.procedures[i], histogram);
  }
  (*json)["all"] = Of(run.all, histogram);
  (*json)["skipped_deliveries"] = run.skipped_deliveries;
  (*json)["skipped_districts"] = run.skipped_districts;
  (*json)["verbs"] = bench::VerbSumsJson(run.verbs);
  (*json)["paths"] = bench::PathsJson(run.paths);
  (*json)["timeline"] = bench::TimelineJson(run.timeline, [](const tpcc::IntervalReport& interval) {
    return Json{{"transactions_per_second", interval.Rate(interval.transactions)},
                {"new_orders_per_minute", 60 * interval.Rate(interval.new_orders)},
                {"aborted", interval.aborts},
                {"transactions", bench::KindsJson(interval, ProcedureNames())}};
  });
}

}  // namespace

std::vector<std::string> ProcedureNames() {
  return {std::begin(tpcc::kProcedureNames), std::end(tpcc::kProcedureNames)};
}

nlohmann::ordered_json ConfigurationJson(const TpccResult& result) {
  Json json = {{"version", GANNET_VERSION}, {"fabric", FabricOf(result.options)}};
  json.update(ValuesOf(result.options, 0, kWithDurability));
  if (result.options.cluster_file.has_value()) json["slot"] = result.slot;
  return json;
}

std::string ToJson(const TpccResult& result) {
  Json json;
  if (result.run.has_value()) AddRun(result, &json);
  if (result.durability.has_value()) json["durability"] = Of(*result.durability, result.options);
  Json& memory = json["memory"] = Of(result.memory());
  if (result.run.has_value()) {
    memory["after_load"] = Of(result.after_load);
    memory["client_cache_bytes"] = result.client_cache_bytes();
    memory["client_caches"] = OfCaches(result);
  }
  if (!result.consistency.empty()) {
    Json& consistency = json["consistency"] = Json::array();
    for (const tpcc::ConditionResult& c : result.consistency) {
      consistency.push_back({{"condition", c.condition}, {"holds", c.holds}, {"detail", c.detail}});
    }
  }
  if (!result.not_checked.empty()) json["not_checked"] = result.not_checked;
  json["configuration"] = ConfigurationJson(result);
  json["load_seconds"] = result.load_seconds;
  if (result.before_run_calibration.is_measured()) {
    json["calibration"] = bench::CalibrationJson(result.before_run_calibration, result.after_run_calibration);
  }
  return JsonText(json);
}

}  // namespace gannet::cli
