// TPC-C with few and with many cores at the servers: what is scarce, and so the better path, changes with them.
#include <algorithm>
#include <array>

#include "absl/strings/str_format.h"
#include "lab/experiments/paths/paths.h"

namespace gannet::experiments::paths {
namespace {

// Durations at scale 1. Warm-up: every client thread fills its caches, and measures both paths of each kind of access.
constexpr absl::Duration kCoresWarmup = absl::Milliseconds(60);
constexpr absl::Duration kCoresWindow = absl::Milliseconds(6);
constexpr int kCores[] = {4, 8, 16, 24};

Experiment Cores(const Options& options, const std::array<int, 5>& mix) {
  Experiment e;
  e.chart = Chart::kBars;
  e.x_axis = "cores of each server";
  TpccRackOptions rack = Rack(options);
  rack.mix = mix;
  rack.warmup = options.Scaled(kCoresWarmup);
  rack.duration = options.Scaled(kCoresWindow);
  for (const int cores : kCores) {
    rack.server_threads = cores;
    const auto add = [&](const PathSeries& series) {
      AddPoint(series, absl::StrFormat("%d cores", cores), rack, &e).x = cores;
    };
    std::ranges::for_each(kFixed, add);
    add(kAdaptive);
  }
  return e;
}

}  // namespace

Experiment TpccCores(const Options& options) {
  Experiment e = Cores(options, {45, 43, 4, 4, 4});
  e.id = "tpcc-cores";
  e.title = "TPC-C, standard mix, with 4 to 24 cores per server";
  e.notes = {"Latencies are those of NewOrder.",
             "A server's CPU also trains models, on cores besides those for calls. So its share can exceed 100%."};
  return e;
}

Experiment TpccLookups(const Options& options) {
  Experiment e = Cores(options, {10, 0, 90, 0, 0});
  e.id = "tpcc-lookups";
  e.title = "TPC-C, 10% NewOrder and 90% OrderStatus (XStore, section 7.10), with 4 to 24 cores per server";
  e.notes = {"Latencies are those of OrderStatus."};
  return e;
}

}  // namespace gannet::experiments::paths
