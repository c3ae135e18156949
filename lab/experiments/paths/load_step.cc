// A step of load: in the middle of the run more clients come, and later they leave. They make each access by a call.
// With few clients the servers' cores are idle, and calls are the better path; with many, the calls wait in queues.
#include <algorithm>

#include "lab/experiments/paths/paths.h"

namespace gannet::experiments::paths {
namespace {

// Durations at scale 1.
constexpr absl::Duration kStepWarmup = absl::Milliseconds(4);
constexpr absl::Duration kInterval = absl::Milliseconds(1);
constexpr absl::Duration kBegin = absl::Milliseconds(20);
constexpr absl::Duration kLength = absl::Milliseconds(80);
constexpr absl::Duration kStepWindow = absl::Milliseconds(160);
constexpr int kServerCores = 4;
constexpr int kMachines = 2;
constexpr int kMachinesOfStep = 3;
constexpr int kThreads = 8;

}  // namespace

Experiment LoadStep(const Options& options) {
  Experiment e =
      NewExperiment("load-step", "TPC-C, a step of load", Chart::kTimeline, "ms since the begin of the measurement");
  TpccRackOptions rack = Rack(options);
  rack.data_nodes = 2;
  rack.machines = kMachines;
  rack.threads = kThreads;
  rack.server_threads = kServerCores;
  rack.mix = {10, 0, 90, 0, 0};
  rack.warmup = options.Scaled(kStepWarmup);
  rack.duration = std::max(kStepWindow * options.scale, absl::Microseconds(4));
  rack.interval = options.Scaled(kInterval);
  rack.step = TpccLoadStep{.machines = kMachinesOfStep,
                           .threads = kThreads,
                           .coroutines = 4,
                           .reads = txn::ReadPathPolicy::kCall,
                           .begin = kBegin * options.scale,
                           .length = options.Scaled(kLength)};
  for (const PathSeries& series : kFixed) AddPoint(series, "whole run", rack, &e);
  AddPoint(kAdaptive, "whole run", rack, &e);
  e.notes = {
      "Two servers with 4 cores, and always 2 machines x 8 client threads: --clients has no effect. From the 20th to "
      "the 100th millisecond (x scale) 3 more machines x 8 threads x 4 transactions in flight run the same mix by "
      "calls only. The figures are those of the first two machines alone."};
  return e;
}

}  // namespace gannet::experiments::paths
