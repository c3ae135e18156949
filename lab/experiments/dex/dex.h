// The experiments of DEX (VLDB'24) on a simulated rack like its own: four machines, each of which has a part of the
// memory and works on a part of the keys. Here are those of section 8.2 for which our DEX has what they need: its
// claims, with changes that are written at once. Leaves that are kept and written back later, and ranges that move, it
// has not.
//
// Rivals. Sherman and P-Sherman are our B-link tree, the latter with keys that are partitioned as DEX's are. SMART is
// not ours; the paper's factors against it are not compared.
#pragma once

#include <vector>

#include "lab/experiments/experiment.h"
#include "lab/experiments/report.h"

namespace gannet::experiments::dex {

Experiment Fig6(const Options& options);  // the five workloads; also table 2

// All of them, in the paper's order.
std::vector<Experiment> Experiments(const Options& options);

// `experiments` were run; they may be some of Experiments(options). The claims are those whose points are among them.
Report MakeReport(const Options& options, std::vector<Experiment> experiments);

}  // namespace gannet::experiments::dex
