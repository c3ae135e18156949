// All kinds of index (index/registry.h) in one table, for those who choose the kind of a table (docs/indexes.md): the
// same rows on the same simulated rack, read and changed by the transactions of other nodes. A new kind has a row at
// once.
#pragma once

#include <vector>

#include "lab/experiments/experiment.h"
#include "lab/experiments/report.h"

namespace gannet::experiments::kinds {

// One experiment for each of Work, with two points for each kind that can do it: one client on each machine, so that
// nothing waits in a queue, and all clients.
std::vector<Experiment> Experiments(const Options& options);
// `experiments` were run; they may be some of Experiments(options). The columns of the table are those of experiments
// that were run.
Report MakeReport(const Options& options, std::vector<Experiment> experiments);

}  // namespace gannet::experiments::kinds
