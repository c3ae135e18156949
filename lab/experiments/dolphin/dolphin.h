// The experiments of Dolphin (MSST'24) on a simulated rack like its own: four machines with client threads, and four
// memory servers.
//
// Rivals. Sherman is our B-link tree, with values in its entries. Its leaves have 448 bytes, the paper's 1 KB. The
// threads of a machine combine their changes of one leaf, where Sherman's hand its lock on in a local queue. Marlin is
// the same tree with values in records, for lookups only: a lookup READs the leaf and then the record. Its updates and
// its scans are not the paper's (an update of a record takes four round trips here, and records that were loaded
// together are fetched with one READ), so the factors against those are quoted. SMART is not ours; all factors against
// it are quoted.
#pragma once

#include <string>
#include <vector>

#include "lab/experiments/experiment.h"
#include "lab/experiments/report.h"

namespace gannet::experiments::dolphin {

enum class System { kSherman, kMarlin, kDolphin };
const char* NameOf(System system);

// Operations, in the order of ycsb::Kind.
struct Load {
  const char* name;
  ycsb::Mix mix;
};
inline constexpr Load kUpdates = {"A", {50, 50, 0, 0, 0}};
inline constexpr Load kReads = {"C", {100, 0, 0, 0, 0}};
inline constexpr Load kInserts = {"LOAD", {0, 0, 100, 0, 0}};
inline constexpr Load kScans = {"range-only", {0, 0, 0, 100, 0}};
inline constexpr Load kScansAndInserts = {"range-write", {0, 0, 50, 50, 0}};
inline constexpr Load kCluster8 = {"cluster 8", {50, 50, 0, 0, 0}};
inline constexpr Load kCluster9 = {"cluster 9", {100, 0, 0, 0, 0}};

// The paper's keys.
inline constexpr double kPaperKeys = 512e6;
// Key lines of a leaf (index/dolphin/dolphin.h): of the paper's leaf of 1 KB, of our default, and of our largest one.
inline constexpr int kPaperKeyLines = 7;
inline constexpr int kSmallKeyLines = 3;
inline constexpr int kLargeKeyLines = 9;
// The sizes of the paper's caches in figure 6, in MB of one machine. Ours have as many bytes for each key.
inline constexpr int kCacheSizes[] = {50, 100, 200, 400, 800};
// A cache for all inner nodes. In the paper it has 2,000 MB, of which Sherman's inner nodes take 460 (table II).
inline constexpr int kWholeCache = 0;
std::string CacheLabel(int megabytes);
std::string WorkloadLabel(const Load& load, ycsb::Distribution distribution);
// The name of Dolphin with such leaves.
std::string SeriesOf(int key_lines);

// One run.
Point PointOf(const Options& options, System system, const Load& load, ycsb::Distribution distribution,
              int cache_megabytes = kWholeCache);
// The same with leaves of Dolphin that have so many key lines.
Point WithKeyLines(Point point, int key_lines);

Experiment Fig6a(const Options& options);  // sizes of the cache, skewed
Experiment Fig6c(const Options& options);  // the same, uniform
Experiment Fig7(const Options& options);   // YCSB A and C
Experiment Fig7c(const Options& options);  // inserts only; also table II
Experiment Fig8(const Options& options);   // scans
Experiment Fig9(const Options& options);   // the mixes of two real workloads

// The claims whose points are among these.
std::vector<Claim> ClaimsOf(const std::vector<Experiment>& experiments);

// All of them, in the paper's order.
std::vector<Experiment> Experiments(const Options& options);

// `experiments` were run; they may be some of Experiments(options). The claims are those whose points are among them.
Report MakeReport(const Options& options, std::vector<Experiment> experiments);

}  // namespace gannet::experiments::dolphin
