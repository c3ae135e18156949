// TPC-C with few and with many cores at the servers: what is scarce, and so the better path, changes with them.
#include <algorithm>
#include <array>

#include "absl/strings/str_format.h"
#include "experiments/paths/paths.h"

namespace gannet::experiments::paths {
namespace {

// At scale 1. Warm-up: every client thread fills its caches, and measures both paths of each kind of access.
constexpr absl::Duration kWarmup = absl::Milliseconds(30);
constexpr absl::Duration kWindow = absl::Milliseconds(2);
constexpr int kCores[] = {4, 8, 16, 24};

void AddPoint(const Series& series, int cores, const TpccRackOptions& rack, Experiment* e) {
  Point& point = e->points.emplace_back();
  point.series = series.name;
  point.label = absl::StrFormat("%d cores", cores);
  point.x = cores;
  point.tpcc = rack;
  point.tpcc->reads = series.reads;
  point.tpcc->server_threads = cores;
}

Experiment Cores(const Options& options, const std::array<int, 5>& mix) {
  Experiment e;
  e.chart = Chart::kBars;
  e.x_axis = "cores of each server";
  TpccRackOptions rack = Rack(options);
  rack.mix = mix;
  rack.warmup = std::max(kWarmup * options.scale, absl::Microseconds(1));
  rack.duration = std::max(kWindow * options.scale, absl::Microseconds(1));
  for (const int cores : kCores) {
    for (const Series& series : kFixed) AddPoint(series, cores, rack, &e);
    AddPoint(kAdaptive, cores, rack, &e);
  }
  return e;
}

}  // namespace

Experiment TpccCores(const Options& options) {
  Experiment e = Cores(options, {45, 43, 4, 4, 4});
  e.id = "tpcc-cores";
  e.title = "TPC-C, standard mix, with 4 to 24 cores per server";
  e.notes = {"Latencies are those of NewOrder."};
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
