// Our own experiments on how the path of an access is chosen (docs/choosing-the-path.md): TPC-C on the rack of XStore's
// section 7.10, each with fixed paths and with the adaptive one.
#pragma once

#include <string>
#include <vector>

#include "lab/experiments/experiment.h"
#include "lab/experiments/path_series.h"
#include "lab/experiments/report.h"

namespace gannet::experiments::paths {

Experiment TpccCores(const Options& options);    // the standard mix, with 4 to 24 cores per server
Experiment TpccLookups(const Options& options);  // the mix of XStore's Fig. 16b, the same
Experiment LoadStep(const Options& options);     // more clients come, and leave

std::vector<Experiment> Experiments(const Options& options);
// `experiments` were run; they may be some of Experiments(options).
Report MakeReport(const Options& options, std::vector<Experiment> experiments);

// Claims of MakeReport, for the files of this folder.
std::vector<Claim> ClaimsOf(const std::vector<Experiment>& experiments);

inline constexpr PathSeries kFixed[] = {
    {"one-sided", txn::ReadPathPolicy::kOneSided},
    {"calls", txn::ReadPathPolicy::kCall},
    {"ordered tables by calls", txn::ReadPathPolicy::kOrderedByCall},
};

// Adds a point that runs `rack` with the paths of `series`.
Point& AddPoint(const PathSeries& series, std::string label, const TpccRackOptions& rack, Experiment* e);

// The rack, without its mix, its cores and its times.
TpccRackOptions Rack(const Options& options);

}  // namespace gannet::experiments::paths
