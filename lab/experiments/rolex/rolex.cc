#include "lab/experiments/rolex/rolex.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/quantity.h"

namespace gannet::experiments::rolex {
namespace {

// Durations for one point, at scale 1. Warm-up: until the queues of the slowest system have their full length.
constexpr absl::Duration kWarmup = absl::Milliseconds(1);
constexpr absl::Duration kWindow = absl::Milliseconds(2);

constexpr int kMemoryNodes = 3;
// Operations of a thread. The paper does not say; with two, ROLEX inserts about as many times the keys of EMT-D as in
// the paper (fig. 8a). With more, all that use verbs meet the limits of the NICs, where they are alike.
constexpr int kInFlight = 2;
// The fill in percent: 14 of a leaf's 16 slots. The paper's leaves are half full (table 1: 95.4 MB of leaf tables, with
// 8 bytes for each leaf, for 100M keys). An entry of our leaf tables has 12 bytes, so one byte per key needs fuller
// leaves.
constexpr int kFill = 88;
// FG's cache has room for the upper levels, but not for the two lowest ones of inner nodes: each node of these leads to
// some 16 others. (The paper's 100M keys make the tree a level or two higher than ours of 1M, so it misses more.)
constexpr double kTopBytesPerKey = 0.02;

std::string SettingOf(const Options& o) {
  return absl::StrFormat(
      "%s keys of 8 bytes with values of 8 bytes in the entries (the paper: 100,000,000), %d memory nodes with one "
      "core and one ConnectX-5 100G each, %s with a cache of 1 byte per key, simulated%s; windows are %.4g x 2 ms of "
      "virtual time, seed %d",
      WithCommas(o.keys), kMemoryNodes, ClientsNote(o.clients.machines, o.clients.threads), SpreadNote(o), o.scale,
      o.seed);
}

// Bytes of cache for one server.
uint64_t CacheBytes(const Options& options, double bytes_per_key) {
  return std::max<uint64_t>(1, static_cast<uint64_t>(bytes_per_key * static_cast<double>(options.keys) / kMemoryNodes));
}

}  // namespace

const char* NameOf(System system) {
  static constexpr const char* kNames[] = {"FG", "Sherman", "EMT-D", "XStore-D", "ROLEX"};
  return kNames[static_cast<size_t>(system)];
}

bench::YcsbOptions PaperRack(const Options& options, System system, const ycsb::Workload& workload,
                             ycsb::Distribution distribution) {
  bench::YcsbOptions o = SmallPairs(options, distribution, kFill);
  o.workload = workload;
  o.servers = kMemoryNodes;
  o.server_threads = 1;
  o.coroutines = kInFlight;
  o.warmup = options.Scaled(kWarmup);
  o.duration = options.Scaled(kWindow);
  switch (system) {
    case System::kFg:
      o.index = ycsb::IndexKind::kBlink;
      o.cache_bytes = CacheBytes(options, kTopBytesPerKey);
      break;
    case System::kSherman:
      o.index = ycsb::IndexKind::kBlink;
      o.cache_bytes = CacheBytes(options, kCacheBytesPerKey);
      break;
    case System::kEmtD:
      o.index = ycsb::IndexKind::kXStore;
      o.paths.reads = ycsb::Path::kCall;
      break;
    case System::kXStoreD:
      o.index = ycsb::IndexKind::kXStore;
      break;
    case System::kRolex:
      o.index = ycsb::IndexKind::kRolex;
      o.cache_bytes = CacheBytes(options, kCacheBytesPerKey);
      break;
  }
  return o;
}

Point PointOf(const Options& options, System system, const ycsb::Workload& workload, ycsb::Distribution distribution,
              double windows) {
  Point point;
  point.series = NameOf(system);
  point.options = PaperRack(options, system, workload, distribution);
  *point.options.warmup *= windows;
  *point.options.duration *= windows;
  return point;
}

std::vector<Experiment> Experiments(const Options& options) {
  return {Fig7(options),  Fig8a(options), Fig8c(options),        Fig9(options),
          Fig10(options), Fig11(options), OneOperation(options), Fig12(options)};
}

Report MakeReport(const Options& options, std::vector<Experiment> experiments) {
  Report report;
  report.system = "ROLEX";
  report.setting = SettingOf(options);
  report.claims = ClaimsOf(experiments);
  report.experiments = std::move(experiments);
  report.nics = {"cx5-100g"};
  return report;
}

}  // namespace gannet::experiments::rolex
