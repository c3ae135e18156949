// The experiments of Catfish (TSAS 8(2), 2022, sections 4 and 5) on a simulated rack: window searches of an R-tree by
// calls ("fast messaging"), by READs ("RDMA offloading"), and by the path that is chosen for each search.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lab/experiments/experiment.h"
#include "lab/experiments/path_series.h"
#include "lab/experiments/report.h"

namespace gannet::experiments::catfish {

// Two experiments for each variant of the tree: only searches, and 10% inserts. The paper has a figure for the
// throughput and one for the latency of each.
Experiment Fig11(const Options& options);  // R*-tree
Experiment Fig13(const Options& options);
Experiment Fig15(const Options& options);  // basic R-tree
Experiment Fig17(const Options& options);
Experiment Fig19(const Options& options);  // Hilbert R-tree
Experiment Fig21(const Options& options);
Experiment Fig23(const Options& options);  // number of rectangles
Experiment Fig24(const Options& options);  // entries of a node
Experiment Fig25(const Options& options);  // refinement
Experiment Fig26(const Options& options);  // streets
Experiment Fig6(const Options& options);   // server threads that poll, or wait for events
Experiment Fig7b(const Options& options);  // all READs of a level at once
Experiment Fig8(const Options& options);   // a limit on searches that READ at the same time

std::vector<Experiment> Experiments(const Options& options);
// `experiments` were run; they may be some of Experiments(options).
Report MakeReport(const Options& options, std::vector<Experiment> experiments);

// Claims of MakeReport, for the files of this folder.
std::vector<Claim> ClaimsOf(const std::vector<Experiment>& experiments);

inline constexpr PathSeries kCalls = {"calls", txn::ReadPathPolicy::kCall};
inline constexpr PathSeries kReads = {"one-sided", txn::ReadPathPolicy::kOneSided};
inline constexpr PathSeries kWays[] = {kCalls, kReads, kAdaptive};

// A server of the model answers many times as many searches per core as the paper's, whose 28 cores were its bound.
// With this number of cores CPU time is as scarce as in the paper, compared with the network.
inline constexpr int kScarceCores = 3;
inline constexpr int kPaperCores = 28;

// The names of the series of Fig6, Fig7b and Fig8.
inline constexpr std::string_view kPolling = "polling";
inline constexpr std::string_view kEvents = "events";
inline constexpr std::string_view kAllAtOnce = "all of a level at once";
inline constexpr std::string_view kOneAtATime = "one READ at a time";
inline constexpr std::string_view kNoLimit = "no limit";
inline constexpr std::string_view kThreeAtATime = "three at a time";

// The rack without its windows, with kScarceCores: the paper's R*-tree, with fewer rectangles that are larger by the
// same factor.
SpatialRackOptions Rack(const Options& options);

// The upper bounds of the edges of windows, with the paper's names. All are larger by that factor.
struct Scale {
  std::string_view name;
  WindowScale windows;
};
Scale ScaleOf(const Options& options, double most, std::string_view name);
Scale PowerLaw(const Options& options);                  // from 1e-5 to 1e-2
std::vector<Scale> PaperScales(const Options& options);  // 1e-5, 1e-2, power law

// Numbers of clients from few to `most`.
std::vector<int> ClientCounts(int most);

// Adds a point whose clients search the index alone.
void AddIndexPoint(std::string_view series, const std::string& label, double x, const SpatialRackOptions& rack,
                   const index::CatfishClientOptions& client, Experiment* e);
// Adds a point for each of kWays.
void AddWays(const std::string& label, double x, const SpatialRackOptions& rack, Experiment* e);

}  // namespace gannet::experiments::catfish
