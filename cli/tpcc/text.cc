// The report as text.
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/quantity.h"
#include "cli/common/parse.h"
#include "cli/common/table.h"
#include "cli/report/bench_text.h"
#include "cli/tpcc/result.h"

namespace gannet::cli {
namespace {

std::string WhereTheDataIs(const TpccResult& result) {
  const TpccOptions& o = result.options;
  const std::string index =
      *o.ordered_index == index::IndexKind::kXStore
          ? ""
          : absl::StrFormat("ordered index %s, changed by %s, ", index::EntryOf(*o.ordered_index).name,
                            index::NameOf(*o.index_rights));
  const std::string warehouses = Count(o.warehouses, "warehouse");
  if (o.cluster_file.has_value()) {
    return absl::StrFormat(
        "%s on %s of %s (%s), as its client in slot %d, %sseed %d\nown copy of ITEM loaded in %.1f s\n", warehouses,
        Count(o.nodes, "server"), o.cluster, FabricOf(o), result.slot, index, o.run.seed, result.load_seconds);
  }
  return absl::StrFormat("%s on %s (shm%s), %sseed %d\n%s in %.1f s\n", warehouses, Count(o.nodes, "node"),
                         o.adversarial ? ", adversarial" : "", index, o.run.seed,
                         o.loaded ? "recovered from " + o.database.directory : "loaded", result.load_seconds);
}

std::string InFlight(const tpcc::RunReport& run) {
  const std::string coroutines = Count(run.coroutines, "coroutine");
  return run.in_flight == 0 ? coroutines : absl::StrFormat("%s and %d in flight", coroutines, run.in_flight);
}

std::string Heading(const TpccResult& result) {
  const TpccOptions& o = result.options;
  std::string text = WhereTheDataIs(result);
  if (!result.run.has_value()) return text;
  text += absl::StrFormat("ran %.1f s after %s of warm-up: %s with %s each, mix %d,%d,%d,%d,%d, %s\n",
                          result.run->seconds, absl::FormatDuration(o.run.warmup), Count(result.run->threads, "thread"),
                          InFlight(*result.run), o.run.mix[0], o.run.mix[1], o.run.mix[2], o.run.mix[3], o.run.mix[4],
                          o.run.think_time ? "think time" : "no think time");
  if (result.interrupted) text += InterruptedText();
  return text;
}

std::vector<NamedReport> ReportsOf(const tpcc::RunReport& run) {
  std::vector<NamedReport> reports;
  for (size_t i = 0; i < run.procedures.size(); ++i) {
    reports.push_back({tpcc::kProcedureNames[i], &run.procedures[i]});
  }
  reports.push_back({"all", &run.all});
  return reports;
}

std::string Throughput(const TpccResult& result, int width) {
  const tpcc::RunReport& run = *result.run;
  Table table(WithLatencyHeader({"", "committed", "aborted+retried", "rolled back"}));
  const auto add = [&table](const char* name, const tpcc::ProcedureReport& p) {
    table.AddUnlessZero(
        WithLatencies({name, WithCommas(p.committed), WithCommas(p.aborted), WithCommas(p.rolled_back)}, p));
  };
  for (size_t i = 0; i < run.procedures.size(); ++i) add(tpcc::kProcedureNames[i], run.procedures[i]);
  add("all", run.all);
  return (table.empty() ? "no transaction ended\n" : table.ToString(width)) +
         absl::StrFormat("\n%s per second\n%s per minute (tpmC, unaudited, %s)\n",
                         Count(static_cast<uint64_t>(run.transactions_per_second), "transaction"),
                         Count(static_cast<uint64_t>(run.new_orders_per_minute), "NewOrder"),
                         result.options.run.think_time ? "with think time" : "no think time");
}

std::string SkippedDeliveries(const tpcc::RunReport& run) {
  if (!run.many_deliveries_skipped()) return "";
  return absl::StrFormat("%s of %s skipped %s without an order (clause 2.7.4.2)\n", WithCommas(run.skipped_deliveries),
                         CountOf(run.of(tpcc::Procedure::kDelivery).committed, "delivery", "deliveries"),
                         Count(run.skipped_districts, "district"));
}

std::string Recovery(const DurabilityReport& durability) {
  std::string text;
  for (size_t node = 0; node < durability.recovery.size(); ++node) {
    const txn::RecoveryReport& r = durability.recovery[node];
    text += absl::StrFormat(
        "node %d: recovered epoch %d: %s from %s and %s of log with %s, in %.2f + %.2f s%s\n", node, r.recovered_epoch,
        Count(r.records, "record"),
        r.checkpoint_id == 0 ? "no checkpoint"
                             : absl::StrFormat("checkpoint %d (%s)", r.checkpoint_id, FormatBytes(r.checkpoint_bytes)),
        FormatBytes(r.log_bytes), Count(r.transactions, "transaction"), r.log_seconds, r.load_seconds,
        r.torn_tail ? "; the last write was torn" : "");
    if (r.older_checkpoint_id == 0) continue;
    text += absl::StrFormat("  checkpoint %d is DAMAGED; %d and the log took its place for %s: nothing is lost\n",
                            r.checkpoint_id, r.older_checkpoint_id, Count(r.replaced.size(), "table"));
  }
  return text;
}

std::string Durability(const TpccResult& result) {
  const TpccOptions& o = result.options;
  const DurabilityReport& d = *result.durability;
  if (o.verb == TpccVerb::kCheck)
    return absl::StrFormat("%s was read, not changed\n%s", o.database.directory, Recovery(d));
  std::string text = absl::StrFormat("durability %s in %s: %s\n%s", FormatDurability(o.database.durability),
                                     o.database.directory, d.log_description, Recovery(d));
  if (!result.run.has_value()) return text;
  const double per_transaction =
      d.log.transactions == 0 ? 0.0 : static_cast<double>(d.log.record_bytes) / static_cast<double>(d.log.transactions);
  text += absl::StrFormat("log: %s in %s, every %s; %s on disk, %s; %s taken during the run\n",
                          Count(d.log.transactions, "transaction"), CountOf(d.log.batches, "batch", "batches"),
                          absl::FormatDuration(o.database.group_commit), FormatBytes(d.log.disk_bytes),
                          Count(d.log.failures, "failure"), Count(static_cast<int>(d.checkpoints), "checkpoint"));
  text += absl::StrFormat(
      "log bytes: %.0f per transaction that writes; all together %.0f per NewOrder, of which %.0f are payload; "
      "overhead %.2fx, write amplification %.2fx; closed in %.2f s\n",
      per_transaction, d.bytes_per_new_order(), d.payload_per_new_order(), d.overhead(), d.write_amplification(),
      d.close_seconds);
  return text;
}

std::string Memory(const TpccResult& result, int width) {
  const MemoryReport& memory = result.memory();
  Table table({"memory", "index", "rows", "inserted", "records", "index, registered", "index, private"});
  for (size_t i = 0; i < memory.tables.size(); ++i) {
    const txn::TableStatistics& t = memory.tables[i];
    const auto grown = static_cast<int64_t>(t.index.keys - result.after_load.tables[i].index.keys);
    table.AddUnlessZero({t.table, t.index_kind, WithCommas(t.index.keys),
                         (grown < 0 ? "-" : "") + WithCommas(static_cast<uint64_t>(std::abs(grown))),
                         FormatBytes(t.record_bytes), FormatBytes(t.index.registered_bytes),
                         FormatBytes(t.index.private_bytes)});
  }
  std::string text = table.ToString(width);
  text += absl::StrFormat(
      "registered memory: %s taken of %s, %s of it free for reuse; %s were taken right after the load\n",
      FormatBytes(memory.heap.carved_bytes), FormatBytes(memory.heap.capacity_bytes),
      FormatBytes(memory.heap.free_bytes), FormatBytes(result.after_load.heap.carved_bytes));
  text += absl::StrFormat("client caches: %s; resident: %s\n", FormatBytes(result.client_cache_bytes()),
                          FormatBytes(memory.resident_bytes));
  return text;
}

std::string Consistency(const TpccResult& result) {
  std::string text = absl::StrFormat("consistency (clause 3.3.2), checked in %.1f s\n", result.check_seconds);
  for (const tpcc::ConditionResult& condition : result.consistency) {
    text +=
        absl::StrFormat("%4d  %s  %s\n", condition.condition, condition.holds ? "holds" : "FAILS", condition.detail);
  }
  return text;
}

}  // namespace

std::string ToText(const TpccResult& result, const TextStyle& style) {
  std::string text = Heading(result);
  if (result.run.has_value()) {
    const std::vector<NamedReport> reports = ReportsOf(*result.run);
    text += "\n" + Throughput(result, style.width) + SkippedDeliveries(*result.run);
    if (style.histograms) text += "\n" + HistogramsText(reports, style.width);
    text += "\n" + VerbsText("transaction", reports, result.run->verbs, style.width);
    if (!result.run->paths.empty()) text += "\n" + PathsText(result.run->paths, style.width);
  }
  if (result.durability.has_value()) text += "\n" + Durability(result);
  text += "\n" + Memory(result, style.width);
  if (!result.not_checked.empty()) text += "\nconsistency: NOT CHECKED: " + result.not_checked + "\n";
  if (!result.consistency.empty()) text += "\n" + Consistency(result);
  if (result.before_run_calibration.is_measured())
    text += "\n" + CalibrationText(result.before_run_calibration, result.after_run_calibration);
  return Wrap(text, style.width);
}

}  // namespace gannet::cli
