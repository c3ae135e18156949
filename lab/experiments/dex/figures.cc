// The points of all figures.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "lab/experiments/dex/dex.h"

namespace gannet::experiments::dex {
namespace {

using ycsb::Distribution;

constexpr System kSystems[] = {System::kSherman, System::kPSherman, System::kRolex, System::kDex};
constexpr double kCacheShares[] = {0.01, 0.02, 0.04, 0.08, 0.16, 0.32};

constexpr char kSkewed[] = "skewed";
constexpr char kUniform[] = "uniform";

constexpr absl::Duration kMoveWindow = absl::Milliseconds(20);  // at scale 1

const char kLines[] =
    "A latch that another thread took last costs the 100 ns in which a line goes from core to core here, and threads "
    "get it one after the other. The paper's threads are those of two sockets, and spin for its locks, which takes the "
    "line from the thread that has it; that is not modelled.";
const char kScans[] = "Scans take 1 to 100 rows, on average 50; the paper's take 100.";

}  // namespace

Experiment Fig6(const Options& options) {
  Experiment e = NewExperiment("fig6", "Fig. 6: five workloads, skewed", Chart::kBars, "workload");
  e.shows_cache = true;
  const auto add = [&](System system, const WorkloadOfTable1& workload) {
    Point point = PointOf(options, system, workload, Distribution::kZipfian);
    point.x = static_cast<double>(e.points.size());
    e.points.push_back(point);
  };
  for (const WorkloadOfTable1& workload : Table1()) {
    for (const System system : kSystems) add(system, workload);
    if (std::string_view(workload.name) != "write-intensive") continue;
    add(System::kDexPushes, workload);
    add(System::kDexThrough, workload);
    add(System::kDexClaims, workload);
  }
  e.notes = {
      "The paper's text gives factors only; they are among the claims. It has none against the partitioned rivals for "
      "inserts, which \"follow the trend\" of updates.",
      kScans,
      "Write-back loses what a machine has changed in its cache, and acknowledged, if the machine dies, here as in the "
      "paper. Write-through loses nothing, and claims are what transactions use.",
  };
  return e;
}

Experiment Fig7(const Options& options) {
  Experiment e = NewExperiment("fig7", "Fig. 7: the same, uniform", Chart::kBars, "workload");
  e.shows_cache = true;
  for (const WorkloadOfTable1& workload : Table1()) {
    for (const System system : {System::kSherman, System::kPSherman, System::kDex}) {
      e.points.push_back(PointOf(options, system, workload, Distribution::kUniform));
    }
    e.points.push_back(PointOf(options, System::kDex, workload, Distribution::kUniform, 2 * kCacheShare));
    e.points.back().series = std::string(NameOf(System::kDex)) + ", " + CacheLabel(2 * kCacheShare);
  }
  for (size_t i = 0; i < e.points.size(); ++i) e.points[i].x = static_cast<double>(i);
  e.notes = {kScans};
  return e;
}

Experiment Fig8(const Options& options) {
  Experiment e = NewExperiment("fig8", "Fig. 8: parts of the design, write-intensive", Chart::kBars, "keys drawn");
  e.shows_cache = true;
  for (const auto& [distribution, label] :
       {std::pair(Distribution::kZipfian, kSkewed), {Distribution::kUniform, kUniform}}) {
    for (const System system : {System::kSherman, System::kPSherman, System::kDex, System::kDexPushes}) {
      e.points.push_back(PointOf(options, system, Table1()[2], distribution, kSmallCacheShare));
      e.points.back().label = label;
      e.points.back().x = static_cast<double>(e.points.size());
    }
  }
  e.notes = {
      "The paper's baseline, a B+-tree over RDMA, is Sherman's here; with logical partitioning it is P-Sherman; with "
      "the cache, DEX.",
  };
  return e;
}

Experiment Fig9(const Options& options) {
  Experiment e = NewExperiment("fig9", "Fig. 9: parts of the cache, read-intensive, skewed", Chart::kBars, "cache");
  e.shows_cache = true;
  for (const double share : {kCacheShare / 4, kCacheShare}) {
    for (const PartOfCache part : {PartOfCache::kNone, PartOfCache::kCoolingMap, PartOfCache::kLazyAdmission}) {
      Point point = PointOf(options, System::kDex, Table1()[1], Distribution::kZipfian, share);
      point.series = NameOf(part);
      point.label = CacheLabel(share);
      point.x = static_cast<double>(e.points.size());
      point.options.contended_lines = true;
      point.options.one_cooling_latch = part == PartOfCache::kNone;
      if (part != PartOfCache::kLazyAdmission) point.options.leaf_admission_percent = 100;
      e.points.push_back(point);
    }
  }
  e.notes = {kLines};
  return e;
}

Experiment Fig10(const Options& options) {
  Experiment e =
      NewExperiment("fig10", "Fig. 10: a machine gives half of its keys to a new one", Chart::kTimeline, "ms");
  e.shows_cache = true;
  for (const int times : {1, 2, 4}) {
    Point point = PointOf(options, System::kDex, Table1()[2], Distribution::kZipfian, times * kCacheShare);
    point.series = CacheLabel(times * kCacheShare);
    point.label = Table1()[2].name;
    point.options.duration = options.Scaled(kMoveWindow);
    point.options.interval = options.Scaled(kMoveWindow / 40);
    point.options.move_after = options.Scaled(kMoveWindow / 4);
    e.points.push_back(point);
  }
  e.notes = {
      "The caches are the paper's 256, 512 and 1,024 MB, in parts of the data. One thread hands the leaves back, as in "
      "the paper. It goes through the whole cache for each of 16 slices of the keys at each server, so the time in "
      "which nobody "
      "uses the keys of a slice grows with the cache.",
      "After the move the new machine's cache is empty, and fills.",
  };
  return e;
}

Experiment Fig11(const Options& options) {
  Experiment e = NewExperiment("fig11", "Fig. 11: sizes of the cache, skewed", Chart::kLines, "cache, % of the data");
  e.shows_cache = true;
  for (const WorkloadOfTable1* workload : {&Table1()[1], &Table1()[2]}) {
    for (const double share : kCacheShares) {
      Point point = PointOf(options, System::kDex, *workload, Distribution::kZipfian, share);
      point.series = std::string(NameOf(System::kDex)) + ", " + workload->name;
      point.label = CacheLabel(share);
      point.x = 100 * share;
      point.options.contended_lines = true;
      e.points.push_back(point);
    }
  }
  e.notes = {
      "In the paper the throughput of the write-intensive workload falls above 8%, because 36 threads of two sockets "
      "contend for the latches of the most popular leaves; with 18 threads of one socket it does not.",
      kLines};
  return e;
}

Experiment Fig12(const Options& options) {
  Experiment e = NewExperiment("fig12", "Fig. 12: push-down, skewed", Chart::kLines, "threads of the memory side");
  e.shows_cache = true;
  for (const WorkloadOfTable1* workload : {&Table1()[1], &Table1()[2]}) {
    const auto add = [&](System system, int threads) {
      Point point = PointOf(options, system, *workload, Distribution::kZipfian, kSmallCacheShare);
      point.series = workload->name;
      point.options.server_threads = std::max(threads, 1);
      point.label = absl::StrCat(threads);
      point.x = threads;
      e.points.push_back(point);
    };
    add(System::kDex, 0);
    for (const int threads : {1, 2, kMemoryThreads}) add(System::kDexPushes, threads);
  }
  e.notes = {"Of each machine; 0: nothing is pushed down."};
  return e;
}

}  // namespace gannet::experiments::dex
