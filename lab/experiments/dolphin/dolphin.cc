#include "lab/experiments/dolphin/dolphin.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/quantity.h"

namespace gannet::experiments::dolphin {
namespace {

// For one point, at scale 1. Caches are filled before; in the warm-up they come to have what is used most.
constexpr absl::Duration kWarmup = absl::Milliseconds(3);
constexpr absl::Duration kWindow = absl::Milliseconds(5);

constexpr int kMemoryServers = 4;
// "We warm up the tree with 512 million items 50% full" (IV-A).
constexpr int kFill = 50;

}  // namespace

const char* NameOf(System system) {
  static constexpr const char* kNames[] = {"Sherman", "Marlin", "Dolphin"};
  return kNames[static_cast<size_t>(system)];
}

std::string CacheLabel(int megabytes) {
  return absl::StrFormat("cache of %d MB", megabytes);
}

std::string WorkloadLabel(const Load& load, ycsb::Distribution distribution) {
  return absl::StrFormat("%s %s", load.name, ycsb::kDistributionNames[static_cast<size_t>(distribution)]);
}

std::string SeriesOf(int key_lines) {
  if (key_lines == kPaperKeyLines) return NameOf(System::kDolphin);
  return absl::StrFormat("%s, %d slots", NameOf(System::kDolphin), key_lines * 7);
}

Point PointOf(const Options& options, System system, const Load& load, ycsb::Distribution distribution,
              int cache_megabytes) {
  Point point;
  point.series = NameOf(system);
  point.label = load.name;
  bench::YcsbOptions& o = point.options = SmallPairs(options, distribution, kFill);
  o.mix = load.mix;
  o.servers = kMemoryServers;
  o.server_threads = 1;  // which lend blocks only
  o.coroutines = 1;      // a thread waits for each of its operations
  o.index = ycsb::IndexKind::kBlink;
  o.inline_values = system != System::kMarlin;
  if (system == System::kDolphin) {
    o.index = ycsb::IndexKind::kDolphin;
    o.index_options = absl::StrCat("key_lines=", kPaperKeyLines);
  }
  if (cache_megabytes != kWholeCache) {
    // The part of a machine's cache that is for one server.
    const double cache = cache_megabytes * 1e6 / kPaperKeys * static_cast<double>(o.keys) / o.servers;
    o.cache_bytes = std::max<uint64_t>(1, static_cast<uint64_t>(cache));
  }
  o.warmup = options.Scaled(kWarmup);
  o.duration = options.Scaled(kWindow);
  return point;
}

Point WithKeyLines(Point point, int key_lines) {
  point.series = SeriesOf(key_lines);
  point.options.index_options = absl::StrCat("key_lines=", key_lines);
  return point;
}

std::vector<Experiment> Experiments(const Options& options) {
  return {Fig6a(options), Fig6c(options), Fig7(options), Fig7c(options), Fig8(options), Fig9(options)};
}

Report MakeReport(const Options& options, std::vector<Experiment> experiments) {
  Report report;
  report.system = "Dolphin";
  report.setting = absl::StrFormat(
      "%s random keys of 8 bytes with values of 8 bytes in the entries (the paper: 512,000,000), leaves of Dolphin of "
      "1 KB, %d%% full, %s with one operation in flight each, %d memory servers, simulated%s; windows are %.4g x 5 ms "
      "of virtual time after %.4g x 3 ms, seed %d",
      WithCommas(options.keys), kFill, ClientsNote(options.clients.machines, options.clients.threads), kMemoryServers,
      SpreadNote(options), options.scale, options.scale, options.seed);
  report.claims = ClaimsOf(experiments);
  report.experiments = std::move(experiments);
  report.nics = {"cx5-100g"};
  return report;
}

}  // namespace gannet::experiments::dolphin
