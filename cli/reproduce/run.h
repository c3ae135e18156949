#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/reproduce/experiment.h"

namespace gannet::cli {

// Fills in what the options of all points leave open. InvalidArgument: which of the flags is wrong.
Status CompleteExperiments(std::vector<Experiment>* experiments);

// `done` of `of` runs are done; the last of them, or what begins, is `what`.
using RunExperimentsProgress = std::function<void(size_t done, size_t of, const std::string& what)>;

// After that. Fills in `measured` of all points, `jobs` of them at once. Those that need the same keys and index load
// them once. Cancelled soon after *stop has become true: then only the points that were run are left.
Status RunExperiments(int jobs, const RunExperimentsProgress& progress, const std::atomic<bool>* stop,
                      std::vector<Experiment>* experiments);

}  // namespace gannet::cli
