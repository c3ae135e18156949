#include "lab/experiments/dex/dex.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/quantity.h"

namespace gannet::experiments::dex {
namespace {

using index::shared_leaf::Keeping;

// For one point, at scale 1. The warm-up fills the caches: some ten lookups for each leaf.
constexpr absl::Duration kWarmup = absl::Milliseconds(60);
constexpr absl::Duration kWindow = absl::Milliseconds(10);

constexpr int kFill = 90;
constexpr double kPairBytes = 16;

constexpr WorkloadOfTable1 kTable1[] = {
    {"read-only", {100, 0, 0, 0, 0}, 3.6, 2.5},     {"read-intensive", {95, 5, 0, 0, 0}, 3.4, 2.5},
    {"write-intensive", {50, 50, 0, 0, 0}, 9.6, 7}, {"insert-intensive", {50, 0, 50, 0, 0}, 0, 0},
    {"scan-intensive", {0, 0, 5, 95, 0}, 2.8, 1.6},
};

Keeping KeepingOf(System system) {
  if (system == System::kDex || system == System::kDexPushes) return Keeping::kWriteBack;
  return system == System::kDexThrough ? Keeping::kWriteThrough : Keeping::kNone;
}

}  // namespace

const char* NameOf(System system) {
  static constexpr const char* kNames[] = {"Sherman",        "P-Sherman",          "ROLEX",           "DEX",
                                           "DEX, push-down", "DEX, write-through", "DEX, claims only"};
  return kNames[static_cast<size_t>(system)];
}

const char* NameOf(PartOfCache part) {
  static constexpr const char* kNames[] = {"one latch, eager", "cooling map, eager", "cooling map, lazy admission"};
  return kNames[static_cast<size_t>(part)];
}

std::span<const WorkloadOfTable1> Table1() {
  return kTable1;
}

std::string CacheLabel(double cache_share) {
  return absl::StrFormat("cache of %g%%", 100 * cache_share);
}

Point PointOf(const Options& options, System system, const WorkloadOfTable1& workload, ycsb::Distribution distribution,
              double cache_share) {
  Point point;
  point.series = NameOf(system);
  point.label = workload.name;
  bench::YcsbOptions& o = point.options = SmallPairs(options, distribution, kFill);
  o.mix = workload.mix;
  o.colocated = true;
  o.servers = options.clients.machines;
  o.server_threads = kMemoryThreads;
  o.coroutines = 1;  // a thread waits for each of its operations
  o.partitioned = system != System::kSherman && system != System::kRolex;
  o.keeping = KeepingOf(system);
  o.version_reads = system == System::kSherman;
  o.index = !o.partitioned || system == System::kPSherman ? ycsb::IndexKind::kBlink : ycsb::IndexKind::kDex;
  if (system == System::kRolex) o.index = ycsb::IndexKind::kRolex;
  if (system == System::kDexPushes) {
    o.paths.reads = ycsb::Path::kAdaptive;
    o.updates = o.inserts_by = ycsb::Path::kAdaptive;
  }
  // The part of a machine's cache that is for one server.
  const double cache = cache_share * kPairBytes * static_cast<double>(o.keys) / o.servers;
  o.cache_bytes = std::max<uint64_t>(1, static_cast<uint64_t>(cache));
  o.warmup = options.Scaled(kWarmup);
  o.duration = options.Scaled(kWindow);
  return point;
}

std::vector<Experiment> Experiments(const Options& options) {
  return {Fig6(options), Fig7(options), Fig8(options), Fig9(options), Fig10(options), Fig11(options), Fig12(options)};
}

Report MakeReport(const Options& options, std::vector<Experiment> experiments) {
  Report report;
  report.system = "DEX";
  report.setting = absl::StrFormat(
      "%s keys of 8 bytes with values of 8 bytes in the entries (the paper: 200,000,000), %s, each of which has a part "
      "of the memory, %d threads for calls and a cache of %.0f%% of the data, simulated%s; windows are %.4g x 10 ms of "
      "virtual time after %.4g x 60 ms, seed %d",
      WithCommas(options.keys), ClientsNote(options.clients.machines, options.clients.threads), kMemoryThreads,
      100 * kCacheShare, SpreadNote(options), options.scale, options.scale, options.seed);
  report.claims = ClaimsOf(experiments);
  report.experiments = std::move(experiments);
  report.nics = {"cx5-100g"};
  return report;
}

}  // namespace gannet::experiments::dex
