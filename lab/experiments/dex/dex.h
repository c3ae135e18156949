// The experiments of DEX (VLDB'24) on a simulated rack like its own: four machines, each of which has a part of the
// memory and works on a part of the keys. DEX keeps the leaves that it caches, and writes them back when they are
// evicted (index/shared_leaf/claim/claim.h), as the paper's does. Next to that: with changes that are written through,
// and with claims, by which transactions use it; and, where that is said, with the push-down of section 6
// (ycsb::Path::kAdaptive). In figures 9 and 11 a line that threads change in turn costs time (Cost::kTakenLine).
//
// Rivals. Sherman and P-Sherman are our B-link tree, the latter with keys that are partitioned as DEX's are. As in the
// paper, Sherman READs a leaf's version, the leaf, and its version again (bench/ycsb/version_reads.h). SMART is not
// ours; the paper's factors against it are not compared.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "lab/experiments/experiment.h"
#include "lab/experiments/report.h"

namespace gannet::experiments::dex {

enum class System { kSherman, kPSherman, kRolex, kDex, kDexPushes, kDexThrough, kDexClaims };
const char* NameOf(System system);

// Figure 9: each has what those before it have. The first has one latch for what cools, and admits every leaf.
enum class PartOfCache { kNone, kCoolingMap, kLazyAdmission };
const char* NameOf(PartOfCache part);

// The paper's cache of 256 MB for 200M pairs of 16 bytes: 8% of the data.
inline constexpr double kCacheShare = 0.08;
// Its cache of 31 MB, with which it measures the push-down.
inline constexpr double kSmallCacheShare = 0.01;
inline constexpr int kMemoryThreads = 4;  // of each machine

// Table 1: inserts, reads, updates, scans of 100 rows. And DEX's factors against Sherman and P-Sherman (section 8.2).
struct WorkloadOfTable1 {
  const char* name;
  ycsb::Mix mix;  // in the order of ycsb::Kind
  double sherman;
  double p_sherman;
};
std::span<const WorkloadOfTable1> Table1();

// One run. `cache_share`: of each machine, of all the data.
Point PointOf(const Options& options, System system, const WorkloadOfTable1& workload, ycsb::Distribution distribution,
              double cache_share = kCacheShare);
// The label of a cache of this size.
std::string CacheLabel(double cache_share);

Experiment Fig6(const Options& options);   // the five workloads, skewed; also table 2
Experiment Fig7(const Options& options);   // uniform
Experiment Fig8(const Options& options);   // what each part of the design brings
Experiment Fig9(const Options& options);   // what the cooling map and lazy admission bring
Experiment Fig10(const Options& options);  // keys move to another machine
Experiment Fig11(const Options& options);  // sizes of the cache
Experiment Fig12(const Options& options);  // threads of the memory side

// The claims whose points are among these.
std::vector<Claim> ClaimsOf(const std::vector<Experiment>& experiments);

// All of them, in the paper's order.
std::vector<Experiment> Experiments(const Options& options);

// `experiments` were run; they may be some of Experiments(options). The claims are those whose points are among them.
Report MakeReport(const Options& options, std::vector<Experiment> experiments);

}  // namespace gannet::experiments::dex
