#include "lab/experiments/kinds/kinds.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/quantity.h"
#include "index/registry.h"
#include "lab/experiments/kind_rack/rack.h"
#include "lab/experiments/path_series.h"
#include "nlohmann/json.hpp"

namespace gannet::experiments::kinds {
namespace {

using kind_rack::kPayloadBytes;
using kind_rack::kWorkNames;
using kind_rack::RackOptions;
using kind_rack::Work;

// The clients of a point, and its durations at scale 1. Warm-up: clients fill their caches. The fewer they are, the
// longer that takes, and caches of rows and leaves take longer than those of what leads there.
struct Load {
  std::string_view name;
  bool all;  // or one on each machine
  absl::Duration warmup;
  absl::Duration warmup_of_reads;
  absl::Duration window;
};
constexpr Load kFew = {"one client on each machine", false, absl::Milliseconds(40), absl::Milliseconds(40),
                       absl::Milliseconds(10)};
constexpr Load kAll = {"all clients", true, absl::Milliseconds(5), absl::Milliseconds(15), absl::Milliseconds(5)};

constexpr const char* kTitles[] = {"Reads of a row by its key", "Reads and updates, half of each",
                                   "Inserts of keys between others", "Inserts of ascending keys", "Scans of 100 rows"};

bool Can(const index::IndexTraits& kind, Work work) {
  if (work == Work::kAppend) return !kind.spatial;
  return work != Work::kScan || kind.ordered || kind.spatial;
}

std::vector<index::IndexKind> Kinds() {
  std::vector<index::IndexKind> kinds;
#define GANNET_ADD_KIND(enumerator, entry) kinds.push_back(index::IndexKind::enumerator);
  GANNET_INDEX_KINDS(GANNET_ADD_KIND)
#undef GANNET_ADD_KIND
  return kinds;
}

RackOptions RackOf(const Options& options, Work work, const Load& load) {
  RackOptions rack;
  rack.rows = options.keys;
  rack.machines = options.clients.machines;
  rack.machine_cores = options.clients.threads;
  rack.clients = options.clients.machines * (load.all ? options.clients.threads : 1);
  rack.work = work;
  const bool reads = work == Work::kRead || work == Work::kHalfUpdates;
  rack.warmup = options.Scaled(reads ? load.warmup_of_reads : load.warmup);
  rack.duration = options.Scaled(load.window);
  rack.spread = options.spread;
  rack.seed = options.seed;
  return rack;
}

// A column of the table: a value of the reports of the runs of `work` with this load.
struct Figure {
  Work work;
  const Load& load;
  const char* key;
  const char* head;
  const char* what;
  const char* pointer;  // to the value in the run's report
  double factor;
  int digits;
};

constexpr Figure kFigures[] = {
    {Work::kRead, kFew, "read_p50_us", "read us", "median latency of a read, one client on each machine",
     "/latency_us/p50", 1, 1},
    {Work::kRead, kFew, "read_p99_us", "p99 us", "its 99th percentile", "/latency_us/p99", 1, 1},
    {Work::kRead, kFew, "read_reads", "READs", "READs of a read", "/verbs/read", 1, 2},
    {Work::kRead, kFew, "read_bytes", "bytes", "bytes of payload of a read, both ways", "/verbs/bytes", 1, 0},
    {Work::kRead, kAll, "read_mops", "read M/s", "million reads per second, all clients", "/operations_per_second",
     1e-6, 2},
    {Work::kHalfUpdates, kAll, "half_updates_mops", "half upd M/s",
     "million operations per second, half of them reads and half updates, all clients", "/operations_per_second", 1e-6,
     2},
    {Work::kInsert, kFew, "insert_p50_us", "insert us", "median latency of an insert, one client on each machine",
     "/latency_us/p50", 1, 1},
    {Work::kInsert, kFew, "insert_round_trips", "trips", "round trips of an insert", "/verbs/round_trips", 1, 2},
    {Work::kInsert, kAll, "insert_mops", "insert M/s", "million inserts per second, all clients",
     "/operations_per_second", 1e-6, 2},
    {Work::kInsert, kAll, "insert_server_cpu_percent", "CPU %",
     "busy share of the server's threads during these inserts, above 100 with training", "/server/cpu", 100, 0},
    {Work::kAppend, kAll, "append_mops", "append M/s",
     "million inserts per second, each of a greater key than all before, all clients", "/operations_per_second", 1e-6,
     2},
    {Work::kScan, kFew, "scan_p50_us", "scan us", "median latency of a scan of 100 rows, one client on each machine",
     "/latency_us/p50", 1, 1},
    {Work::kScan, kFew, "scan_reads", "scan READs", "READs of a scan", "/verbs/read", 1, 1},
    {Work::kScan, kAll, "scan_mops", "scan M/s", "million scans per second, all clients", "/operations_per_second",
     1e-6, 2},
    {Work::kRead, kFew, "index_bytes_per_key", "index B/key",
     "bytes of the index at the server, after the load and without the rows", "/index/bytes_per_key", 1, 1},
    {Work::kRead, kFew, "cache_bytes_per_key", "cache B/key",
     "bytes of the cache of a machine, after the reads of its one client", "/cache_bytes_per_key", 1, 2},
};

const Experiment* FindWork(const std::vector<Experiment>& experiments, Work work) {
  const auto at = std::ranges::find(experiments, kWorkNames[static_cast<size_t>(work)], &Experiment::id);
  return at == experiments.end() ? nullptr : &*at;
}

std::optional<double> ValueOf(const Figure& figure, const Experiment& experiment, std::string_view kind) {
  const Point* const point = FindPoint(experiment, kind, figure.load.name);
  if (point == nullptr || point->measured.mops == 0) return std::nullopt;
  const nlohmann::json report = nlohmann::json::parse(point->measured.report);
  return figure.factor * report.at(nlohmann::json::json_pointer(figure.pointer)).get<double>();
}

SummaryTable TableOf(const std::vector<Experiment>& experiments) {
  SummaryTable table;
  table.rows_are = "kind";
  for (const index::IndexKind kind : Kinds()) table.rows.push_back({index::EntryOf(kind).name, {}});
  for (const Figure& figure : kFigures) {
    const Experiment* const experiment = FindWork(experiments, figure.work);
    if (experiment == nullptr) continue;
    table.columns.push_back({figure.key, figure.head, figure.what, figure.digits});
    for (SummaryTable::Row& row : table.rows) row.values.push_back(ValueOf(figure, *experiment, row.name));
  }
  table.notes = {
      "-: hash has no order, so it has no scans, and rectangles have no order, so none is greater than all others.",
      "The rows of catfish are squares with keys of 40 bytes; a scan is a search of a window that meets 100 of them on "
      "average.",
      "Transactions that lost a conflict ran again, and count once.",
      "hash remembers places of rows in at most 1 MiB for each session, dex leaves in at most 64 MiB for each process: "
      "of a larger table they have a smaller part.",
      "Accesses by the server's own CPU are left out: the model has no cost for a step in some of the kinds.",
  };
  return table;
}

}  // namespace

std::vector<Experiment> Experiments(const Options& options) {
  std::vector<Experiment> experiments;
  for (size_t work = 0; work < std::size(kWorkNames); ++work) {
    Experiment e = NewExperiment(std::string(kWorkNames[work]), kTitles[work], Chart::kBars, "clients");
    for (const index::IndexKind kind : Kinds()) {
      if (!Can(index::EntryOf(kind).traits, static_cast<Work>(work))) continue;
      for (const Load& load : {kFew, kAll}) {
        Point& point = e.points.emplace_back();
        point.series = index::EntryOf(kind).name;
        point.label = load.name;
        point.kind = RackOf(options, static_cast<Work>(work), load);
        point.kind->kind = kind;
      }
    }
    experiments.push_back(std::move(e));
  }
  return experiments;
}

Report MakeReport(const Options& options, std::vector<Experiment> experiments) {
  const RackOptions rack = RackOf(options, Work::kRead, kAll);
  Report report;
  report.system = "the choice of an index";
  report.setting = absl::StrFormat(
      "%s rows of %d bytes with random keys of 8 bytes on one server with %d threads for calls; %s, with a ConnectX-5 "
      "100G each, simulated%s; every operation is a transaction that reads one-sidedly, of keys drawn by Zipf 0.99; "
      "databases have their default options; one client on each machine is measured for %.4g x 10 ms of virtual time "
      "after %.4g x 40 ms, all clients for %.4g x 5 ms after %.4g x 5 ms (reads and updates: 15), seed %d",
      WithCommas(options.keys), kPayloadBytes, rack.server_threads,
      ClientsNote(options.clients.machines, options.clients.threads), SpreadNote(options), options.scale, options.scale,
      options.scale, options.scale, options.seed);
  report.table = TableOf(experiments);
  report.experiments = std::move(experiments);
  report.nics = {rack.nic};
  return report;
}

}  // namespace gannet::experiments::kinds
