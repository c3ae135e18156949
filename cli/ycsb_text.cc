#include "cli/ycsb_text.h"

#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/quantity.h"
#include "cli/bench_text.h"
#include "cli/parse.h"
#include "cli/table.h"

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
  text += absl::StrFormat("%s keys (%s) with values of %d bytes on %s%s\n", WithCommas(o.keys),
                          NameOf(o.key_form, ycsb::kKeyFormNames), o.value_bytes,
                          Count(static_cast<uint64_t>(o.servers), "server"), WhereTheServersAre(result));
  text += absl::StrFormat("ran %s after %s of warm-up: %d x %d client threads with %s each, %s per server%s\n",
                          absl::FormatDuration(absl::Trunc(absl::Seconds(run.seconds), absl::Microseconds(1))),
                          absl::FormatDuration(*o.warmup), o.clients.machines, o.clients.threads,
                          Count(static_cast<uint64_t>(run.coroutines), "coroutine"),
                          Count(static_cast<uint64_t>(o.server_threads), "thread"),
                          o.colocated ? ", on the same machines" : "");
  if (result.interrupted) text += InterruptedText();
  return text;
}

std::string Throughput(const ycsb::RunReport& run) {
  Table table(WithLatencyHeader({"", "operations"}));
  const auto add = [&table](std::string_view name, const ycsb::KindReport& kind) {
    table.Add(WithLatencies({std::string(name), WithCommas(kind.operations)}, kind));
  };
  for (size_t k = 0; k < ycsb::kKinds; ++k) {
    if (run.kinds[k].operations > 0) add(ycsb::kKindNames[k], run.kinds[k]);
  }
  add("all", run.all);
  std::string text = table.ToString() + absl::StrFormat("\n%s operations per second\n",
                                                        WithCommas(static_cast<uint64_t>(run.operations_per_second)));
  if (run.all.records > 0 && run.seconds > 0) {
    text += absl::StrFormat("%s records per second by scans\n",
                            WithCommas(static_cast<uint64_t>(static_cast<double>(run.all.records) / run.seconds)));
  }
  return text;
}

std::string Verbs(const ycsb::RunReport& run) {
  std::vector<NamedReport> reports;
  for (size_t k = 0; k < ycsb::kKinds; ++k) reports.push_back({ycsb::kKindNames[k], &run.kinds[k]});
  reports.push_back({"all", &run.all});
  return VerbsText("operation", reports, run.all.verbs);
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

// A fixed path says nothing that the verbs do not say.
std::string Paths(const bench::YcsbResult& result) {
  return result.options.paths.reads == ycsb::Path::kAdaptive ? PathsText(result.run.paths) : "";
}

std::string Store(const bench::YcsbResult& result) {
  std::string text = absl::StrFormat(
      "index: %s keys, %s nodes, height %d, %s registered and %s private; records and index: %s of registered memory; "
      "resident: %s\n",
      WithCommas(result.index.keys), WithCommas(result.index.nodes), result.index.height,
      FormatBytes(result.index.registered_bytes), FormatBytes(result.index.private_bytes),
      FormatBytes(result.memory.carved_bytes - result.memory.free_bytes), FormatBytes(result.resident_bytes));
  if (!result.model.has_value() || result.model->sub_models == 0) return text;
  const index::XStore::ModelStatistics& m = *result.model;
  text += absl::StrFormat(
      "model: %s sub-models (%s), %s table entries; %.3f leaves predicted per lookup, mean error %.3f leaves; %s whole "
      "trainings, %s of sub-models\n",
      WithCommas(m.sub_models), FormatBytes(m.model_bytes), WithCommas(m.table_entries), m.leaves_per_lookup,
      m.mean_error, WithCommas(m.generation), WithCommas(m.retrainings));
  return text;
}

std::string Log(const bench::YcsbResult& result) {
  if (!result.log.has_value()) return "";
  const log::LogStatistics& l = *result.log;
  const auto each = [](uint64_t sum, uint64_t of) {
    return of == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(of);
  };
  return absl::StrFormat("log (%s, %s): %s writes of %.1f bytes each, %.1f on the disk; %s batches of %.0f writes\n",
                         FormatDurability(result.options.durability), result.options.disk, WithCommas(l.transactions),
                         each(l.record_bytes, l.transactions), each(l.disk_bytes, l.transactions),
                         WithCommas(l.batches), each(l.transactions, l.batches));
}

std::string Simulation(const bench::YcsbResult& result) {
  const bench::SimulationReport& s = *result.simulation;
  Table table({"busy", "CPU", "NIC sends", "NIC serves", "link out", "link in"});
  const auto add = [&table](const char* name, const bench::Usage& u) {
    const auto percent = [](double share) { return absl::StrFormat("%.1f%%", 100 * share); };
    table.Add(
        {name, percent(u.cpu), percent(u.nic_send), percent(u.nic_serve), percent(u.link_out), percent(u.link_in)});
  };
  add("servers", s.servers);
  add("client machines", s.machines);
  return table.ToString() +
         absl::StrFormat("simulated %.4f s in %.1f s of real time: %s events, %s switches of threads\n",
                         s.virtual_seconds, result.run_seconds, WithCommas(s.events), WithCommas(s.switches));
}

}  // namespace

std::string ToText(const bench::YcsbResult& result) {
  std::string text = Heading(result) + "\n" + Throughput(result.run) + "\n" + Verbs(result.run) + "\n" +
                     Lookups(result.run) + Paths(result) + Store(result) + Log(result);
  if (result.simulation.has_value()) return text + "\n" + Simulation(result);
  return text + CalibrationText(result.before_run_calibration, result.after_run_calibration);
}

}  // namespace gannet::cli
