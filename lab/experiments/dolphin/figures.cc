// The points of all figures.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/quantity.h"
#include "lab/experiments/dolphin/dolphin.h"

namespace gannet::experiments::dolphin {
namespace {

using ycsb::Distribution;

constexpr System kTrees[] = {System::kSherman, System::kDolphin};

// A tree that only inserts grows to this many times its size, or about: then leaves have split six times, and are as
// full as those of a tree that began empty.
constexpr uint64_t kGrowth = 64;
// For each key that is to be there at the end. Dolphin inserts some 8 keys in a microsecond.
constexpr absl::Duration kTimePerKey = absl::Nanoseconds(120);

// Twitter's statistics of the traces (github.com/twitter/cache-trace, stat/2020Mar.md).
constexpr double kTheta8 = 1.7366;
constexpr double kTheta9 = 1.6796;
// Clients that wait for the most popular key take hundreds of microseconds for an operation: windows are longer.
constexpr int kPopularTimes = 4;

void Add(Point point, Experiment* experiment) {
  point.x = static_cast<double>(experiment->points.size());
  experiment->points.push_back(std::move(point));
}

Experiment Fig6(std::string id, std::string title, const Options& options, Distribution distribution) {
  Experiment e = NewExperiment(std::move(id), std::move(title), Chart::kLines, "cache of a machine, MB in the paper");
  e.shows_cache = true;
  for (const System system : kTrees) {
    for (const int megabytes : kCacheSizes) {
      Point point = PointOf(options, system, kUpdates, distribution, megabytes);
      point.label = CacheLabel(megabytes);
      point.x = megabytes;
      e.points.push_back(point);
    }
  }
  e.notes = {
      "Ours have as many bytes for each key: 100 MB are 0.2 bytes. \"Marlin uses the same index cache scheme as "
      "Sherman\" (IV-B), and is not shown there either.",
  };
  return e;
}

}  // namespace

Experiment Fig6a(const Options& options) {
  Experiment e = Fig6("fig6a", "Fig. 6a: sizes of the cache, YCSB A, skewed", options, Distribution::kZipfian);
  e.notes.emplace_back(
      "Quoted: with 800 MB the paper's Dolphin is 1.32 times as fast as SMART, and with 200 MB 1.16 to 3.26 times as "
      "fast as the others in all three figures. Fig. 6b has less skewed keys, and the text does not say how skewed.");
  return e;
}

Experiment Fig6c(const Options& options) {
  return Fig6("fig6c", "Fig. 6c: sizes of the cache, YCSB A, uniform", options, Distribution::kUniform);
}

Experiment Fig7(const Options& options) {
  Experiment e = NewExperiment("fig7", "Fig. 7a, b: YCSB A and C", Chart::kBars, "workload");
  e.shows_cache = true;
  const auto add = [&](Point point, const Load& load, Distribution distribution) {
    point.label = WorkloadLabel(load, distribution);
    Add(std::move(point), &e);
  };
  for (const Distribution distribution : {Distribution::kZipfian, Distribution::kUniform}) {
    for (const System system : kTrees) {
      add(PointOf(options, system, kUpdates, distribution), kUpdates, distribution);
    }
  }
  for (const System system : {System::kSherman, System::kMarlin, System::kDolphin}) {
    add(PointOf(options, system, kReads, Distribution::kZipfian), kReads, Distribution::kZipfian);
  }
  add(WithKeyLines(PointOf(options, System::kDolphin, kReads, Distribution::kZipfian), kSmallKeyLines), kReads,
      Distribution::kZipfian);
  e.notes = {
      "The paper does not say which keys fig. 7 has. That Sherman's tail of A comes from \"write-write conflicts\" "
      "(IV-C) says that they are skewed. Uniform ones are ours.",
      "Quoted: in A the paper's Dolphin is 1.25 to 1.45 times as fast as Sherman, Marlin and SMART.",
  };
  return e;
}

Experiment Fig7c(const Options& options) {
  Experiment e = NewExperiment("fig7c", "Fig. 7c and table II: inserts only", Chart::kBars, "workload");
  const auto add = [&](Point point) {
    bench::YcsbOptions& o = point.options;
    o.keys = std::max<uint64_t>(static_cast<uint64_t>(o.servers), options.keys / kGrowth);
    o.inserts = ycsb::InsertPlace::kRandom;
    o.warmup = options.Scaled(absl::Milliseconds(1));
    o.duration = options.Scaled(kTimePerKey * static_cast<double>(options.keys));
    Add(std::move(point), &e);
  };
  add(PointOf(options, System::kSherman, kInserts, Distribution::kUniform));
  for (const int key_lines : {kSmallKeyLines, kPaperKeyLines, kLargeKeyLines}) {
    add(WithKeyLines(PointOf(options, System::kDolphin, kInserts, Distribution::kUniform), key_lines));
  }
  e.notes = {
      absl::StrFormat("A tree of %s keys grows for %g ms of virtual time, in which Dolphin inserts about the rest; a "
                      "tree that is faster ends with more keys. The paper loads 512,000,000 keys into an empty tree.",
                      WithCommas(options.keys / kGrowth),
                      absl::ToDoubleMilliseconds(e.points.front().options.duration.value())),
      "Quoted: the paper's SMART inserts 1.54 times as slowly as Sherman, Marlin and Dolphin, and takes 305 bytes of "
      "the servers and 10.2 of a client for each key; its Marlin takes 51 of the servers.",
  };
  return e;
}

Experiment Fig8(const Options& options) {
  Experiment e = NewExperiment("fig8", "Fig. 8: scans of up to 100 keys, uniform", Chart::kBars, "workload");
  e.shows_cache = true;
  for (const Load& load : {kScans, kScansAndInserts}) {
    for (const System system : kTrees) Add(PointOf(options, system, load, Distribution::kUniform), &e);
  }
  e.notes = {
      "Scans take 1 to 100 rows, on average 50. The paper says \"up to 100\" (IV-A), and \"a range size of 100\" "
      "(IV-D).",
      "Half inserts make the tree larger by a few percent in a window, and leaves that are half full split rarely.",
      "Quoted: in range-only the paper's Sherman and Dolphin are 4.38 to 22.4 times as fast as Marlin and SMART, which "
      "READ each row by itself.",
  };
  return e;
}

Experiment Fig9(const Options& options) {
  Experiment e = NewExperiment("fig9", "Fig. 9: the mixes of two of Twitter's clusters", Chart::kBars, "workload");
  e.shows_cache = true;
  for (const auto& [load, theta] : {std::pair(kCluster8, kTheta8), {kCluster9, kTheta9}}) {
    for (const System system : kTrees) {
      Point point = PointOf(options, system, load, Distribution::kZipfian);
      point.options.theta = theta;
      *point.options.warmup *= kPopularTimes;
      *point.options.duration *= kPopularTimes;
      Add(std::move(point), &e);
    }
    if (theta == kTheta9) {
      Point small = WithKeyLines(e.points.back(), kSmallKeyLines);
      Add(std::move(small), &e);
    }
  }
  e.notes = {
      "The traces are not replayed. Half updates, or reads only; popularity by the exponents that Twitter found (1.74 "
      "and 1.68), so the most popular key is drawn half of the time. Keys and values have 8 bytes, as in the other "
      "figures; those of the traces have 23 and 9,497, and 32 and 39.",
  };
  return e;
}

}  // namespace gannet::experiments::dolphin
