// Runs experiments on simulated racks.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "bench/ycsb/run.h"
#include "lab/experiments/experiment.h"

namespace gannet::experiments {

// `done` of `of` runs are finished. `what` is the last of them, or the one that begins.
using RunExperimentsProgress = std::function<void(size_t done, size_t of, const std::string& what)>;

struct RunExperimentsOptions {
  int jobs = 1;                             // runs at once, each in a process of its own
  RunExperimentsProgress progress;          // must be set
  bench::YcsbProgress ycsb_progress;        // must be set; of loads in this process, not of runs
  const std::atomic<bool>* stop = nullptr;  // may be null
};

// Fills in `measured` of all points. Points that need the same keys and index load them once. Cancelled soon after
// *stop has become true: then only the finished points are left. Any other error names the run that failed.
Status RunExperiments(const RunExperimentsOptions& options, std::vector<Experiment>* experiments);

}  // namespace gannet::experiments
