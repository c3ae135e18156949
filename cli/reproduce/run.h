#pragma once

#include <functional>
#include <vector>

#include "cli/reproduce/experiment.h"
#include "rdma/base/status.h"

namespace gannet::cli {

// Fills in what the options of all points leave open. InvalidArgument: which of the flags is wrong.
Status CompleteExperiments(std::vector<Experiment>* experiments);

// After that. Fills in `measured` of all points. `progress`: so many of them are done.
Status RunExperiments(int jobs, const std::function<void(size_t done, size_t of)>& progress,
                      std::vector<Experiment>* experiments);

}  // namespace gannet::cli
