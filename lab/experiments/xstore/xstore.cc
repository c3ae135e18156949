#include "lab/experiments/xstore/xstore.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/quantity.h"

namespace gannet::experiments::xstore {
namespace {

// Durations for one point, at scale 1. Warm-up: until the queues of the saturated rack have their full length.
constexpr absl::Duration kWarmup = absl::Microseconds(150);
constexpr absl::Duration kWindow = absl::Microseconds(300);

// Constants of SplittingRack.
constexpr uint64_t kMostSplittingKeys = 100'000;
constexpr int kNearlyFull = 88;            // percent: 14 of 16 slots
constexpr uint64_t kKeysPerSubModel = 50;  // the paper's 2M for 100M keys

std::string SettingOf(const Options& o) {
  return absl::StrFormat(
      "%s keys of 8 bytes with values of 8 bytes (the paper: 100,000,000), one server with 24 cores and two ConnectX-4 "
      "100G, %s, simulated%s; windows are %.4g x 300 us of virtual time, seed %d",
      WithCommas(o.keys), ClientsNote(o.clients.machines, o.clients.threads), SpreadNote(o), o.scale, o.seed);
}

}  // namespace

bench::YcsbOptions PaperRack(const Options& options, char workload, ycsb::Distribution distribution) {
  bench::YcsbOptions o;
  o.workload = *ycsb::FindWorkload(std::string_view(&workload, 1));
  o.distribution = distribution;
  o.keys = options.keys;
  o.spread = options.spread;
  o.seed = options.seed;
  o.fabric = bench::FabricKind::kSim;
  o.nic = "2x-cx4-100g";
  o.clients = options.clients;
  o.server_threads = 24;
  o.warmup = options.Scaled(kWarmup);
  o.duration = options.Scaled(kWindow);
  return o;
}

bench::YcsbOptions SplittingRack(const Options& options, char workload, ycsb::Distribution distribution) {
  bench::YcsbOptions o = PaperRack(options, workload, distribution);
  o.key_form = ycsb::KeyForm::kNoised;
  o.keys = std::min(options.keys, kMostSplittingKeys);
  o.fill_percent = kNearlyFull;
  o.sub_models = std::max<uint64_t>(1, o.keys / kKeysPerSubModel);
  return o;
}

std::string SeriesOf(System system) {
  if (system == System::kLocations) return "XStore + locations";
  return system == System::kXStore ? "XStore" : "RPC";
}

void Use(System system, bench::YcsbOptions* options) {
  options->paths.reads = system == System::kRpc ? ycsb::Path::kCall : ycsb::Path::kOneSided;
  options->locations = system == System::kLocations;
}

std::vector<Experiment> Experiments(const Options& options) {
  return {Fig10(options),  Fig11(options),  Fig12(options),  Fig13a(options), Fig13b(options),
          Fig14a(options), Fig14b(options), Burst(options),  Fig14c(options), Fig15a(options),
          Fig15b(options), Fig15d(options), Fig16a(options), Fig16b(options), Table3(options)};
}

Report MakeReport(const Options& options, std::vector<Experiment> experiments) {
  Report report;
  report.system = "XStore";
  report.setting = SettingOf(options);
  report.claims = ClaimsOf(experiments);
  report.experiments = std::move(experiments);
  report.nics = {"cx4-100g", "2x-cx4-100g"};
  return report;
}

}  // namespace gannet::experiments::xstore
