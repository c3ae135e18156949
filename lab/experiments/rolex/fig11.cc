// The error bound of the models; what one operation takes, and the memory of a client's cache.
#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"
#include "base/quantity.h"
#include "lab/experiments/rolex/rolex.h"

namespace gannet::experiments::rolex {
namespace {

using ycsb::Distribution;
using ycsb::KeyForm;

constexpr int kEpsilons[] = {4, 16, 64, 256};

struct BoundLoad {
  const char* name;
  KeyForm keys;
  ycsb::Mix mix;
};
constexpr BoundLoad kBoundLoads[] = {{"reads", KeyForm::kRandom, {100, 0, 0, 0, 0}},
                                     {"reads of osm-like keys", KeyForm::kOsmLike, {100, 0, 0, 0, 0}},
                                     {"half inserts", KeyForm::kRandom, {50, 0, 50, 0, 0}}};

struct KeyLoad {
  const char* name;
  ycsb::Mix mix;
};
constexpr KeyLoad kLoads[] = {{"read", {100, 0, 0, 0, 0}}, {"update", {0, 100, 0, 0, 0}}, {"insert", {0, 0, 100, 0, 0}}};
// A single client needs a longer time.
constexpr double kWindows = 2;

// Shares of the loaded keys: the sizes of table 1, in proportion.
constexpr double kSizes[] = {0.05, 0.1, 0.5, 1};

}  // namespace

Experiment Fig11(const Options& options) {
  Experiment e = NewExperiment("fig11", "Fig. 11: the error bound of the models", Chart::kLines, "epsilon, in keys");
  e.shows_cache = true;
  for (const BoundLoad& load : kBoundLoads) {
    for (const int epsilon : kEpsilons) {
      Point point = PointOf(options, System::kRolex, *ycsb::FindWorkload("c"), Distribution::kUniform);
      point.options.mix = load.mix;
      point.options.key_form = load.keys;
      point.options.index_options = absl::StrFormat("epsilon=%d", epsilon);
      point.options.cache_bytes = uint64_t{1} << 40;  // no limit
      point.series = absl::StrFormat("%s, %s", NameOf(System::kRolex), load.name);
      point.label = absl::StrFormat("epsilon %d", epsilon);
      point.x = epsilon;
      e.points.push_back(point);
    }
  }
  e.notes = {
      "In the paper a client READs all leaves within the error, so epsilon beyond 256 keys costs it bandwidth. Here "
      "the "
      "leaf table has the leaves' low fences: a client READs one leaf with any error, and the error costs it steps of "
      "a "
      "search in its own memory. A smaller epsilon takes more pieces, hence more cache.",
      "The size of a leaf, delta, is that of the format: 18 slots, 16 of them trained.",
      "Training a model of 128 leaves takes a real core some 100 us here, the paper's 300 us: bench/rolex_bench.cc, "
      "docs/performance.md.",
  };
  return e;
}

Experiment OneOperation(const Options& options) {
  Experiment e = NewExperiment("latency", "Latency and bytes of one operation", Chart::kBars, "operation");
  for (const KeyLoad& load : kLoads) {
    for (const System system : kSystems) {
      Point point = PointOf(options, system, *ycsb::FindWorkload("c"), Distribution::kUniform, kWindows);
      point.options.mix = load.mix;
      point.options.clients = {1, 1};
      point.options.coroutines = 1;
      point.label = load.name;
      point.x = static_cast<double>(&load - kLoads);
      e.points.push_back(point);
    }
  }
  e.notes = {
      "Not a figure of the paper. One client with one operation in flight: nothing queues, so the throughput is "
      "the inverse of the latency."};
  return e;
}

Experiment Fig12(const Options& options) {
  Experiment e = NewExperiment("fig12", "Fig. 12: memory of a client's cache, and table 1", Chart::kBars, "keys");
  e.shows_cache = true;
  for (const double size : kSizes) {
    for (const System system : {System::kSherman, System::kXStoreD, System::kRolex}) {
      Point point = PointOf(options, system, *ycsb::FindWorkload("c"), Distribution::kUniform);
      point.options.keys = std::max<uint64_t>(1000, static_cast<uint64_t>(size * static_cast<double>(options.keys)));
      point.options.cache_bytes = uint64_t{1} << 40;  // no limit
      point.label = absl::StrFormat("%s keys", WithCommas(point.options.keys));
      point.x = static_cast<double>(point.options.keys);
      e.points.push_back(point);
    }
  }
  e.notes = {"Caches have no limit here. FG's whole cache is Sherman's."};
  return e;
}

}  // namespace gannet::experiments::rolex
