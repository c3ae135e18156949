#include "cli/ycsb/text.h"

#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/quantity.h"
#include "cli/common/parse.h"
#include "cli/common/table.h"
#include "cli/report/bench_text.h"

namespace gannet::cli {
namespace {

template <class Enum, size_t N>
std::string NameOf(Enum value, const std::string_view (&names)[N]) {
  return std::string(names[static_cast<size_t>(value)]);
}

std::string WhereTheServersAre(const bench::YcsbResult& result) {
  const bench::YcsbOptions& o = result.options;
  const std::string fabric = NameOf(o.fabric, bench::kFabricNames);
  if (o.cluster_config.has_value()) {
    return absl::StrFormat(" of %s (%s), as its client in slot %d, seed %d", o.cluster_config->file, fabric,
                           result.slot, o.seed);
  }
  return absl::StrFormat(" (%s%s%s), seed %d; loaded in %.1f s", fabric, o.nic.empty() ? "" : ", " + o.nic,
                         o.spread ? "" : ", no spread of round trips", o.seed, result.load_seconds);
}

std::string Heading(const bench::YcsbResult& result) {
  const bench::YcsbOptions& o = result.options;
  const ycsb::RunReport& run = result.run;
  std::string text = absl::StrFormat(
      "workload %s (mix %s of read, update, insert, scan, read-modify-write), %s keys; %s, reads %s, updates %s\n",
      o.workload.name, absl::StrJoin(o.operations(), ","), NameOf(o.keys_drawn(), ycsb::kDistributionNames),
      index::EntryOf(o.index).name, NameOf(o.paths.reads, ycsb::kPathNames), NameOf(o.paths.updates, ycsb::kPathNames));
  text += absl::StrFormat("%s (%s) with values of %s on %s%s\n", Count(o.keys, "key"),
                          NameOf(o.key_form, ycsb::kKeyFormNames), Count(static_cast<uint64_t>(o.value_bytes), "byte"),
                          Count(static_cast<uint64_t>(o.servers), "server"), WhereTheServersAre(result));
  text += absl::StrFormat(
      "ran %s after %s of warm-up: %d x %d client threads with %s each, %s per server%s\n",
      absl::FormatDuration(absl::Trunc(absl::Seconds(run.seconds), absl::Microseconds(1))),
      absl::FormatDuration(*o.warmup), o.clients.machines, o.clients.threads,
      Count(static_cast<uint64_t>(run.coroutines), "coroutine"),
      Count(static_cast<uint64_t>(o.server_threads), "thread"),
      absl::StrCat(o.colocated ? ", on the same machines" : "", o.partitioned ? ", each with a part of the keys" : "",
                   o.keeping == index::shared_leaf::Keeping::kNone
                       ? ""
                       : absl::StrCat(", whose leaves it keeps (", NameOf(o.keeping, bench::kKeepingNames), ")")));
  if (result.interrupted) text += InterruptedText();
  return text;
}

std::string Throughput(const ycsb::RunReport& run, int width) {
  Table table(WithLatencyHeader({"", "operations"}));
  const auto add = [&table](std::string_view name, const ycsb::KindReport& kind) {
    table.Add(WithLatencies({std::string(name), WithCommas(kind.operations)}, kind));
  };
  for (size_t k = 0; k < ycsb::kKinds; ++k) {
    if (run.kinds[k].operations > 0) add(ycsb::kKindNames[k], run.kinds[k]);
  }
  add("all", run.all);
  std::string text =
      table.ToString(width) +
      absl::StrFormat("\n%s per second\n", Count(static_cast<uint64_t>(run.operations_per_second), "operation"));
  if (run.all.records > 0 && run.seconds > 0) {
    const auto records = static_cast<uint64_t>(static_cast<double>(run.all.records) / run.seconds);
    text += absl::StrFormat("%s per second by scans\n", Count(records, "record"));
  }
  return text;
}

std::vector<NamedReport> ReportsOf(const ycsb::RunReport& run) {
  std::vector<NamedReport> reports;
  for (size_t k = 0; k < ycsb::kKinds; ++k) reports.push_back({ycsb::kKindNames[k], &run.kinds[k]});
  reports.push_back({"all", &run.all});
  return reports;
}

std::string Lookups(const ycsb::RunReport& run) {
  const index::ClientStatistics& l = run.lookups;
  if (l.lookups == 0) return absl::StrFormat("client caches: %s\n", FormatBytes(l.cache_bytes));
  const auto each = [&l](uint64_t sum) { return static_cast<double>(sum) / static_cast<double>(l.lookups); };
  return absl::StrFormat(
      "lookups by clients: %s; %.4f by READs alone, %.4f fell back to a call, %.3f leaves or buckets READ for each; "
      "caches: %s\n",
      WithCommas(l.lookups), each(l.one_sided), each(l.fallbacks), each(l.leaves_read), FormatBytes(l.cache_bytes));
}

std::string Move(const ycsb::RunReport& run) {
  if (!run.move.has_value()) return "";
  return absl::StrFormat("%s of keys moved to the last machine in %s; nobody used those of one for %s at most\n",
                         Count(static_cast<uint64_t>(run.move->slices), "slice"),
                         absl::FormatDuration(absl::Seconds(run.move->seconds)),
                         absl::FormatDuration(absl::Seconds(run.move->longest_slice_seconds)));
}

// A fixed path says nothing that the verbs do not say.
std::string Paths(const bench::YcsbResult& result, int width) {
  return result.options.paths.reads == ycsb::Path::kAdaptive ? PathsText(result.run.paths, width) : "";
}

std::string Store(const bench::YcsbResult& result) {
  std::string text = absl::StrFormat(
      "index: %s, %s, height %d, %s registered and %s private; records and index: %s of registered memory; "
      "resident: %s\n",
      Count(result.index.keys, "key"), Count(result.index.nodes, "node"), result.index.height,
      FormatBytes(result.index.registered_bytes), FormatBytes(result.index.private_bytes),
      FormatBytes(result.memory.carved_bytes - result.memory.free_bytes), FormatBytes(result.resident_bytes));
  if (!result.model.has_value() || result.model->sub_models == 0) return text;
  const index::XStore::ModelStatistics& m = *result.model;
  text += absl::StrFormat(
      "model: %s (%s), %s; %.3f leaves predicted per lookup, mean error %.3f leaves; %s, %s of sub-models\n",
      Count(m.sub_models, "sub-model"), FormatBytes(m.model_bytes),
      CountOf(m.table_entries, "table entry", "table entries"), m.leaves_per_lookup, m.mean_error,
      Count(m.generation, "whole training"), WithCommas(m.retrainings));
  return text;
}

std::string Log(const bench::YcsbResult& result) {
  if (!result.log.has_value()) return "";
  const log::LogStatistics& l = *result.log;
  const auto each = [](uint64_t sum, uint64_t of) {
    return of == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(of);
  };
  return absl::StrFormat("log (%s, %s): %s of %.1f bytes each, %.1f on the disk; %s of %.0f writes\n",
                         FormatDurability(result.options.durability), result.options.disk,
                         Count(l.transactions, "write"), each(l.record_bytes, l.transactions),
                         each(l.disk_bytes, l.transactions), CountOf(l.batches, "batch", "batches"),
                         each(l.transactions, l.batches));
}

std::string Simulation(const bench::YcsbResult& result, int width) {
  const bench::SimulationReport& s = *result.simulation;
  Table table({"busy", "CPU", "NIC sends", "NIC serves", "link out", "link in"});
  const auto add = [&table](const char* name, const bench::Usage& u) {
    const auto percent = [](double share) { return absl::StrFormat("%.1f%%", 100 * share); };
    table.AddUnlessZero(
        {name, percent(u.cpu), percent(u.nic_send), percent(u.nic_serve), percent(u.link_out), percent(u.link_in)});
  };
  add("servers", s.servers);
  add("client machines", s.machines);
  return (table.empty() ? "" : table.ToString(width)) +
         absl::StrFormat("simulated %.4f s in %.1f s of real time: %s, %s of threads\n", s.virtual_seconds,
                         result.run_seconds, Count(s.events, "event"), CountOf(s.switches, "switch", "switches"));
}

}  // namespace

std::string ToText(const bench::YcsbResult& result, const TextStyle& style) {
  const std::vector<NamedReport> reports = ReportsOf(result.run);
  std::string text = Heading(result) + "\n" + Throughput(result.run, style.width) + "\n";
  if (style.histograms) text += HistogramsText(reports, style.width) + "\n";
  text += VerbsText("operation", reports, result.run.all.verbs, style.width) + "\n" + Lookups(result.run) +
          Move(result.run) + Paths(result, style.width) + Store(result) + Log(result);
  if (result.simulation.has_value()) {
    text += "\n" + Simulation(result, style.width);
  } else if (result.before_run_calibration.is_measured()) {
    text += CalibrationText(result.before_run_calibration, result.after_run_calibration);
  }
  return Wrap(text, style.width);
}

}  // namespace gannet::cli
