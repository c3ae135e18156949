#include "lab/experiments/dex/dex.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/quantity.h"
#include "lab/experiments/path_series.h"

namespace gannet::experiments::dex {
namespace {

// For one point, at scale 1. The warm-up fills the caches: some ten lookups for each leaf.
constexpr absl::Duration kWarmup = absl::Milliseconds(60);
constexpr absl::Duration kWindow = absl::Milliseconds(10);

constexpr int kMemoryThreads = 4;  // of each machine, as in the paper
constexpr int kFill = 90;
// The paper's cache of 256 MB for 200M pairs of 16 bytes: 8% of the data.
constexpr double kCacheShare = 0.08;
constexpr double kPairBytes = 16;

enum class System { kSherman, kPSherman, kRolex, kDex };
constexpr System kSystems[] = {System::kSherman, System::kPSherman, System::kRolex, System::kDex};
const char* NameOf(System system) {
  static constexpr const char* kNames[] = {"Sherman", "P-Sherman", "ROLEX", "DEX"};
  return kNames[static_cast<size_t>(system)];
}

// Table 1: inserts, reads, updates, scans of 100 rows. And DEX's factors against Sherman and P-Sherman (section 8.2).
struct WorkloadOfTable1 {
  const char* name;
  ycsb::Mix mix;  // in the order of ycsb::Kind
  double sherman;
  double p_sherman;
};
constexpr WorkloadOfTable1 kTable1[] = {
    {"read-only", {100, 0, 0, 0, 0}, 3.6, 2.5},     {"read-intensive", {95, 5, 0, 0, 0}, 3.4, 2.5},
    {"write-intensive", {50, 50, 0, 0, 0}, 9.6, 7}, {"insert-intensive", {50, 0, 50, 0, 0}, 0, 0},
    {"scan-intensive", {0, 0, 5, 95, 0}, 2.8, 1.6},
};

bench::YcsbOptions PaperRack(const Options& options, System system) {
  bench::YcsbOptions o;
  o.keys = options.keys;
  o.distribution = ycsb::Distribution::kZipfian;
  o.key_form = ycsb::KeyForm::kRandom;
  o.fill_percent = kFill;
  o.inline_values = true;
  o.spread = options.spread;
  o.seed = options.seed;
  o.fabric = bench::FabricKind::kSim;
  o.nic = "cx5-100g";
  o.clients = options.clients;
  o.colocated = true;
  o.servers = options.clients.machines;
  o.server_threads = kMemoryThreads;
  o.coroutines = 1;  // a thread waits for each of its operations
  o.partitioned = system == System::kPSherman || system == System::kDex;
  o.index = system == System::kDex     ? ycsb::IndexKind::kDex
            : system == System::kRolex ? ycsb::IndexKind::kRolex
                                       : ycsb::IndexKind::kBlink;
  // Of each machine's cache for each server.
  const double cache = kCacheShare * kPairBytes * static_cast<double>(o.keys) / o.servers;
  o.cache_bytes = std::max<uint64_t>(1, static_cast<uint64_t>(cache));
  o.warmup = options.Scaled(kWarmup);
  o.duration = options.Scaled(kWindow);
  return o;
}

const Point* PointAt(const Experiment& experiment, System system, std::string_view label) {
  return FindPoint(experiment, NameOf(system), label);
}

constexpr char kOneRead[] =
    "our Sherman is a better rival than the paper's, which READs a leaf's version, the leaf, and its version again; "
    "ours READs it once, because lines have versions, and a leaf has 448 bytes, not 1 KB";
constexpr char kWriteThrough[] =
    "the paper's DEX writes a changed leaf when it is evicted. Ours writes changes at once, by two round trips: what "
    "was "
    "acknowledged survives the death of the compute node. Also: ";

void AddFactor(const Experiment& experiment, System rival, const WorkloadOfTable1& workload, double paper,
               const std::string& note, std::vector<Claim>* claims) {
  const Point* const dex = PointAt(experiment, System::kDex, workload.name);
  const Point* const other = PointAt(experiment, rival, workload.name);
  if (paper == 0 || dex == nullptr || other == nullptr) return;
  claims->push_back(Claim::Of(absl::StrFormat("DEX against %s, %s", NameOf(rival), workload.name),
                              RatioOf(dex->measured.mops, other->measured.mops), paper, "section 8.2", note));
}

std::vector<Claim> ClaimsOf(const std::vector<Experiment>& experiments) {
  std::vector<Claim> claims;
  const auto fig6 = std::ranges::find(experiments, "fig6", &Experiment::id);
  if (fig6 == experiments.end()) return claims;
  for (const WorkloadOfTable1& workload : kTable1) {
    const bool writes = workload.mix[1] > 5;
    const std::string note = writes ? std::string(kWriteThrough) + kOneRead : kOneRead;
    AddFactor(*fig6, System::kSherman, workload, workload.sherman, note, &claims);
    AddFactor(*fig6, System::kPSherman, workload, workload.p_sherman, note, &claims);
  }
  if (const Point* const read = PointAt(*fig6, System::kDex, kTable1[0].name); read != nullptr) {
    const Measured& m = read->measured;
    claims.push_back(Claim::Of("READs of a lookup by DEX", m.IfMeasured(m.reads_per_operation), 0.33, "table 2",
                               "less is better; ours: at most 0.36"));
    claims.push_back(Claim::Of("bytes of a lookup by DEX", m.IfMeasured(m.bytes_per_operation), 334, "table 2",
                               "less is better; ours: at most 167"));
  }
  return claims;
}

}  // namespace

Experiment Fig6(const Options& options) {
  Experiment e = NewExperiment("fig6", "Fig. 6: five workloads, skewed", Chart::kBars, "workload");
  e.shows_cache = true;
  for (const WorkloadOfTable1& workload : kTable1) {
    for (const System system : kSystems) {
      Point point;
      point.series = NameOf(system);
      point.label = workload.name;
      point.x = static_cast<double>(e.points.size());
      point.options = PaperRack(options, system);
      point.options.mix = workload.mix;
      e.points.push_back(point);
    }
  }
  e.notes = {
      "The paper's text gives factors only; they are among the claims. It has none against the partitioned rivals for "
      "inserts, which \"follow the trend\" of updates.",
      "Scans take 1 to 100 rows, on average 50; the paper's take 100.",
  };
  return e;
}

std::vector<Experiment> Experiments(const Options& options) {
  return {Fig6(options)};
}

Report MakeReport(const Options& options, std::vector<Experiment> experiments) {
  Report report;
  report.system = "DEX";
  report.setting = absl::StrFormat(
      "%s keys of 8 bytes with values of 8 bytes in the entries (the paper: 200,000,000), zipfian, %s, each of which "
      "has "
      "a part of the memory, %d threads for calls and a cache of %.0f%% of the data, simulated%s; windows are %.4g x "
      "10 "
      "ms of virtual time after %.4g x 60 ms, seed %d",
      WithCommas(options.keys), ClientsNote(options.clients.machines, options.clients.threads), kMemoryThreads,
      100 * kCacheShare, SpreadNote(options), options.scale, options.scale, options.seed);
  report.claims = ClaimsOf(experiments);
  report.experiments = std::move(experiments);
  report.nics = {"cx5-100g"};
  return report;
}

}  // namespace gannet::experiments::dex
