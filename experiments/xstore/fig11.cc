// The throughput of YCSB D over time: clients insert, and read what they and others inserted.
#include <algorithm>
#include <string>

#include "absl/strings/str_format.h"
#include "experiments/xstore/xstore.h"

namespace gannet::experiments::xstore {
namespace {

using ycsb::Distribution;

constexpr Distribution kDistributions[] = {Distribution::kUniform, Distribution::kLatest};
// The paper's timelines are 60 s long. With few keys, in leaves that are nearly full, as many leaves split in
// milliseconds (fig14.cc has the same).
constexpr uint64_t kMostKeys = 100'000;
constexpr int kFillPercent = 88;           // 14 of 16 slots
constexpr uint64_t kKeysPerSubModel = 50;  // the paper's 2M for 100M keys
constexpr absl::Duration kWarmup = absl::Microseconds(500);
constexpr absl::Duration kWatched = absl::Milliseconds(4);
constexpr int kIntervals = 32;

}  // namespace

Experiment Fig11(const Options& options) {
  Experiment e = NewExperiment("fig11", "Fig. 11: YCSB D over time", Chart::kTimeline, "milliseconds");
  for (const Distribution distribution : kDistributions) {
    Point point;
    point.series = std::string(ycsb::kDistributionNames[static_cast<size_t>(distribution)]);
    point.label = "D";
    point.options = PaperRack(options, 'd', distribution);
    point.options.key_form = ycsb::KeyForm::kNoised;
    point.options.keys = std::min(options.keys, kMostKeys);
    point.options.fill_percent = kFillPercent;
    point.options.sub_models = std::max<uint64_t>(1, point.options.keys / kKeysPerSubModel);
    point.options.warmup = options.Scaled(kWarmup);
    point.options.duration = std::max(kWatched * options.scale, absl::Microseconds(kIntervals));
    point.options.interval = *point.options.duration / kIntervals;
    e.points.push_back(point);
  }
  e.notes = {"Throughput over time, reads and inserts together. XStore alone: the paper's others are not built."};
  return e;
}

}  // namespace gannet::experiments::xstore
