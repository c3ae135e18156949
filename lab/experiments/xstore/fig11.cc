// The throughput of YCSB D over time: clients insert, and read what they and others inserted.
#include <algorithm>
#include <string>

#include "lab/experiments/xstore/xstore.h"

namespace gannet::experiments::xstore {
namespace {

using ycsb::Distribution;

constexpr Distribution kDistributions[] = {Distribution::kUniform, Distribution::kLatest};
// The paper's timelines are 60 s long.
constexpr absl::Duration kFig11Warmup = absl::Microseconds(500);
constexpr absl::Duration kFig11Watched = absl::Milliseconds(4);
constexpr int kFig11Intervals = 32;

}  // namespace

Experiment Fig11(const Options& options) {
  Experiment e = NewExperiment("fig11", "Fig. 11: YCSB D over time", Chart::kTimeline, "milliseconds");
  for (const Distribution distribution : kDistributions) {
    Point point;
    point.series = std::string(ycsb::kDistributionNames[static_cast<size_t>(distribution)]);
    point.label = "D";
    point.options = SplittingRack(options, 'd', distribution);
    point.options.warmup = options.Scaled(kFig11Warmup);
    point.options.duration = std::max(kFig11Watched * options.scale, absl::Microseconds(kFig11Intervals));
    point.options.interval = *point.options.duration / kFig11Intervals;
    e.points.push_back(point);
  }
  e.notes = {"Throughput over time, reads and inserts together. XStore alone: the paper's others are not built."};
  return e;
}

}  // namespace gannet::experiments::xstore
