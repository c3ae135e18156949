// What one operation takes, and the memory of a client's cache.
#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"
#include "base/quantity.h"
#include "experiments/rolex/rolex.h"

namespace gannet::experiments::rolex {
namespace {

using ycsb::Distribution;

struct Load {
  const char* name;
  ycsb::Mix mix;
};
constexpr Load kLoads[] = {{"read", {100, 0, 0, 0, 0}}, {"update", {0, 100, 0, 0, 0}}, {"insert", {0, 0, 100, 0, 0}}};
// A single client needs a longer time.
constexpr double kWindows = 2;

// Of the loaded keys: the sizes of table 1, in proportion.
constexpr double kSizes[] = {0.05, 0.1, 0.5, 1};

}  // namespace

Experiment Fig11(const Options& options) {
  Experiment e = NewExperiment("fig11", "Fig. 11: latency and bytes of one operation", Chart::kBars, "operation");
  for (const Load& load : kLoads) {
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
      "One client with one operation in flight: nothing queues, so the throughput is the inverse of the latency.",
      "The paper varies the model's error and the size of a leaf, because a client READs all leaves within the error. "
      "Here the leaf table has the leaves' low fences, so a client READs one leaf with any error, and the size of a "
      "leaf is that of the format (16 trained slots, as in the paper's other figures).",
  };
  return e;
}

Experiment Fig12(const Options& options) {
  Experiment e = NewExperiment("fig12", "Fig. 12: memory of a client's cache, and table 1", Chart::kBars, "keys");
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
  e.notes = {"The memory is among the claims; here caches have no limit. FG's whole cache is Sherman's."};
  return e;
}

}  // namespace gannet::experiments::rolex
