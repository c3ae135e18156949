// Throughput and latency of YCSB C, uniform, with more and more clients.
#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"
#include "lab/experiments/xstore/xstore.h"

namespace gannet::experiments::xstore {
namespace {

struct Load {
  int machines;  // of the paper's 15
  bool all_threads;
  int coroutines;
};

constexpr Load kFig12Loads[] = {
    {1, false, 1}, {1, true, 1}, {4, true, 1}, {8, true, 1}, {15, true, 1}, {15, true, 2}, {15, true, 4}, {15, true, 8},
};

Point PointOfLoad(const Options& options, const Load& load, System system) {
  Point point;
  point.series = SeriesOf(system);
  point.options = PaperRack(options, 'c', ycsb::Distribution::kUniform);
  bench::ClientThreads& clients = point.options.clients;
  clients.machines = std::max(1, clients.machines * load.machines / 15);
  if (!load.all_threads) clients.threads = 1;
  point.options.coroutines = load.coroutines;
  Use(system, &point.options);
  point.label = absl::StrFormat("%dx%dx%d", clients.machines, clients.threads, load.coroutines);
  point.x = clients.machines * clients.threads * load.coroutines;
  const bool most = &load == std::end(kFig12Loads) - 1;
  if (most && system == System::kXStore) point.paper = PaperValue{82, "section 7.2, at a median latency of 16 us"};
  if (most && system == System::kRpc) point.paper = PaperValue{20, "section 7.2: saturated at about 20 M/s"};
  return point;
}

}  // namespace

Experiment Fig12(const Options& options) {
  Experiment e = NewExperiment("fig12", "Fig. 12: throughput and median latency of YCSB C, uniform",
                               Chart::kThroughputLatency, "machines x threads x operations in flight in each");
  for (const System system : {System::kXStore, System::kRpc, System::kLocations}) {
    for (const Load& load : kFig12Loads) e.points.push_back(PointOfLoad(options, load, system));
  }
  return e;
}

}  // namespace gannet::experiments::xstore
