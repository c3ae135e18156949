// The experiments of XStore (OSDI'20) on a simulated rack like its own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/ycsb/options.h"
#include "lab/experiments/experiment.h"
#include "lab/experiments/report.h"

namespace gannet::experiments::xstore {

Experiment Fig10(const Options& options);   // YCSB A-F
Experiment Fig11(const Options& options);   // YCSB D over time
Experiment Fig12(const Options& options);   // throughput and latency
Experiment Fig13a(const Options& options);  // production workloads
Experiment Fig13b(const Options& options);  // number of servers
Experiment Fig14a(const Options& options);  // training of sub-models
Experiment Fig14b(const Options& options);  // reads while others insert
Experiment Burst(const Options& options);   // the same, and after the inserts
Experiment Fig14c(const Options& options);  // a model that grows
Experiment Fig15a(const Options& options);  // memory of the cache
Experiment Fig15b(const Options& options);  // size of the cache
Experiment Fig15d(const Options& options);  // distributions of keys
Experiment Fig16a(const Options& options);  // inline and indirect values
Experiment Fig16b(const Options& options);  // TPC-C
Experiment Table3(const Options& options);  // durability

// All of them, in the paper's order.
std::vector<Experiment> Experiments(const Options& options);

// `experiments` were run; they may be some of Experiments(options). The claims are those whose points are among them.
Report MakeReport(const Options& options, std::vector<Experiment> experiments);

// Claims of MakeReport, for the files of this folder.
std::vector<Claim> ClaimsOf(const std::vector<Experiment>& experiments);

// How the clients of a series read.
enum class System {
  kXStore,     // one-sided, through the learned cache
  kRpc,        // one call each
  kLocations,  // one-sided, XStore with warm location caches at the clients: ours, not the paper's
};
std::string SeriesOf(System system);
void Use(System system, bench::YcsbOptions* options);

// Series of Table3.
inline constexpr const char* kNoLog = "no log";
inline constexpr const char* kLog = "log, nvme";
inline constexpr const char* kSlowLog = "log, sata-ssd";

// Options for the paper's rack, which the points change: one server with 24 cores and two ConnectX-4, clients as given.
bench::YcsbOptions PaperRack(const Options& options, char workload, ycsb::Distribution distribution);
// The options of PaperRack with few noised keys, in leaves that are nearly full. What matters for inserts is how often
// a leaf splits, compared with how often it is read and how fast sub-models are trained. The paper inserts for a
// minute; here each leaf has had its splits within milliseconds.
bench::YcsbOptions SplittingRack(const Options& options, char workload, ycsb::Distribution distribution);

}  // namespace gannet::experiments::xstore
