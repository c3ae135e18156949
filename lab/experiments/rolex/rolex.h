// The experiments of ROLEX (FAST'23) on a simulated rack like its own: client machines with many cores, and memory
// nodes with one. ROLEX's rivals are there as the paper has them, but for the code: XStore-D and EMT-D are our XStore
// with one core per server, Sherman is our B-link tree, and FG is the same with a cache of its upper levels only.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/ycsb/options.h"
#include "lab/experiments/experiment.h"
#include "lab/experiments/report.h"

namespace gannet::experiments::rolex {

Experiment Fig7(const Options& options);   // YCSB A-F
Experiment Fig8a(const Options& options);  // inserts only
Experiment Fig8c(const Options& options);  // mixes of reads and inserts
Experiment Fig9(const Options& options);   // distributions of keys
Experiment Fig10(const Options& options);  // cores of the client machines
Experiment Fig11(const Options& options);  // error bound of the models
Experiment OneOperation(const Options& options);
Experiment Fig12(const Options& options);  // memory of a client's cache; also table 1

// All of them, in the paper's order.
std::vector<Experiment> Experiments(const Options& options);

// `experiments` were run; they may be some of Experiments(options). The claims are those whose points are among them.
Report MakeReport(const Options& options, std::vector<Experiment> experiments);

// Claims of MakeReport, for the files of this folder.
std::vector<Claim> ClaimsOf(const std::vector<Experiment>& experiments);

// The systems in the order of the paper's legends.
enum class System { kFg, kSherman, kEmtD, kXStoreD, kRolex };
inline constexpr System kSystems[] = {System::kFg, System::kSherman, System::kEmtD, System::kXStoreD, System::kRolex};
const char* NameOf(System system);

// The shares of inserts of Fig8c, and the label of its points for each.
inline constexpr int kPercentOfInserts[] = {0, 20, 40, 60, 80, 100};
std::string InsertsLabel(int percent);

// Bytes of the cache of a client machine for each key: what ROLEX's models and leaf tables take (table 1: 96.9 MB for
// 100M keys). Inner nodes take several times as many, "so FG and Sherman overflow the limited local cache" (4.3).
inline constexpr double kCacheBytesPerKey = 1;

// Options for the paper's rack, which the points change: three memory nodes of one core, clients as given, a cache of
// kCacheBytesPerKey, values in the entries of the index.
bench::YcsbOptions PaperRack(const Options& options, System system, const ycsb::Workload& workload,
                             ycsb::Distribution distribution);
// A point of such a run; its window is `windows` times as long.
Point PointOf(const Options& options, System system, const ycsb::Workload& workload, ycsb::Distribution distribution,
              double windows = 1);

}  // namespace gannet::experiments::rolex
