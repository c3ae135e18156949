#include "cli/reproduce/experiment.h"

#include <algorithm>
#include <string_view>

namespace gannet::cli {
namespace {

// Of a point, at scale 1. Warm-up: until the queues of the saturated rack are as long as they get.
constexpr absl::Duration kWarmup = absl::Microseconds(150);
constexpr absl::Duration kWindow = absl::Microseconds(300);

}  // namespace

YcsbOptions PaperRack(const ReproduceOptions& options, char workload, ycsb::Distribution distribution) {
  YcsbOptions o;
  o.workload = *ycsb::FindWorkload(std::string_view(&workload, 1));
  o.distribution = distribution;
  o.keys = options.keys;
  o.seed = options.seed;
  o.fabric = FabricKind::kSim;
  o.nic = "2x-cx4-100g";
  o.clients = options.clients;
  o.server_threads = 24;
  o.warmup = std::max(kWarmup * options.scale, absl::Microseconds(1));
  o.duration = std::max(kWindow * options.scale, absl::Microseconds(1));
  return o;
}

std::string SeriesOf(System system) {
  if (system == System::kLocations) return "XStore + locations";
  return system == System::kXStore ? "XStore" : "RPC";
}

void Use(System system, YcsbOptions* options) {
  options->paths.reads = system == System::kRpc ? ycsb::Path::kCall : ycsb::Path::kOneSided;
  options->locations = system == System::kLocations;
}

std::vector<Experiment> XStoreExperiments(const ReproduceOptions& options) {
  return {Fig10(options),  Fig12(options),  Fig14b(options), Burst(options),
          Fig15b(options), Fig15d(options), Fig16b(options)};
}

}  // namespace gannet::cli
