// Training during inserts: its speed, reads while one machine inserts at a given rate, the effects of a burst of
// inserts, and a model that grows.
#include <algorithm>

#include "absl/strings/str_format.h"
#include "lab/experiments/xstore/xstore.h"

namespace gannet::experiments::xstore {
namespace {

struct Fig14Row {
  uint64_t insert_rate;
  int trainers;
  double paper;
  const char* source;
};

constexpr Fig14Row kFig14Rows[] = {
    {0, 1, 61, "section 7.5"},
    {500'000, 1, 0, ""},
    {1'000'000, 1, 0, ""},
    {2'000'000, 1, 0, ""},
    {2'800'000, 1, 37, "section 7.5: one training thread"},
    {0, 2, 61, "section 7.5"},
    {1'000'000, 2, 0, ""},
    {2'000'000, 2, 0, ""},
    {2'800'000, 2, 53, "section 7.5: two training threads"},
};
constexpr absl::Duration kFig14Warmup = absl::Milliseconds(3);
constexpr absl::Duration kFig14Window = absl::Milliseconds(2);

constexpr absl::Duration kTrained = absl::Milliseconds(6);

// From this number of keys on the inserts at the highest rate make it half as large again, and more, within the time.
constexpr uint64_t kGrowingKeys = 30'000;
constexpr uint64_t kKeysPerGrowingSubModel = 200;  // the default of the index
constexpr absl::Duration kGrown = absl::Milliseconds(12);

constexpr absl::Duration kBurst = absl::Milliseconds(3);
constexpr absl::Duration kFig14Watched = absl::Milliseconds(16);
constexpr absl::Duration kBefore = absl::Microseconds(300);
constexpr int kFig14Intervals = 32;

bench::YcsbOptions Fig14Rack(const Options& options, uint64_t insert_rate) {
  bench::YcsbOptions o = SplittingRack(options, 'c', ycsb::Distribution::kUniform);
  o.insert_rate = insert_rate;
  return o;
}

std::string KeysNote(const Options& options) {
  const bench::YcsbOptions rack = Fig14Rack(options, 0);
  return absl::StrFormat(
      "%d keys in leaves that are %d%% full. So the splits that the paper's 100M keys have in a minute happen within "
      "milliseconds. A leaf that splits makes every client machine miss once, and is trained again.",
      rack.keys, rack.fill_percent);
}

}  // namespace

Experiment Fig14a(const Options& options) {
  Experiment e =
      NewExperiment("fig14a", "Fig. 14a: training of sub-models during YCSB D and E", Chart::kBars, "workload");
  for (const char workload : {'d', 'e'}) {
    for (const int trainers : {1, 2}) {
      Point point;
      point.series = trainers == 1 ? "one training thread" : "two training threads";
      point.label = workload == 'd' ? "D" : "E";
      point.options = SplittingRack(options, workload, ycsb::Distribution::kUniform);
      point.options.trainers = trainers;
      point.options.duration = options.Scaled(kTrained);
      e.points.push_back(point);
    }
  }
  e.notes = {
      "The speed of training is among the claims. A sub-model is trained again after a leaf of it split; what "
      "it takes, 8 us for 200 keys, is a cost of the model (rdma/sim/costs.cc)."};
  return e;
}

Experiment Fig14b(const Options& options) {
  Experiment e = NewExperiment("fig14b", "Fig. 14b: uniform reads during inserts", Chart::kLines,
                               "million inserts per second asked for");
  for (const Fig14Row& row : kFig14Rows) {
    Point point;
    point.series = row.trainers == 1 ? "one training thread" : "two training threads";
    point.x = static_cast<double>(row.insert_rate) * 1e-6;
    point.label = absl::StrFormat("%.1fM inserts/s", point.x);
    point.options = Fig14Rack(options, row.insert_rate);
    point.options.trainers = row.trainers;
    point.options.warmup = options.Scaled(kFig14Warmup);
    point.options.duration = options.Scaled(kFig14Window);
    if (row.paper > 0) point.paper = PaperValue{row.paper, row.source};
    e.points.push_back(point);
  }
  e.notes = {"All operations are counted, as for the other figures; one machine inserts in place of reading.",
             KeysNote(options)};
  return e;
}

Experiment Fig14c(const Options& options) {
  Experiment e = NewExperiment("fig14c", "Fig. 14c: reads while a model outgrows its sub-models", Chart::kTimeline,
                               "milliseconds since the inserts began");
  for (const bool expands : {true, false}) {
    Point point;
    point.series = expands ? "the model is replaced" : "it keeps its sub-models";
    point.options = Fig14Rack(options, 2'800'000);
    point.options.keys = std::min(options.keys, kGrowingKeys);
    point.options.fill_percent = 50;
    point.options.sub_models = expands ? 0 : point.options.keys / kKeysPerGrowingSubModel + 1;
    point.label = absl::StrFormat("from %d keys on", point.options.keys);
    point.options.warmup = options.Scaled(kBefore);
    point.options.duration = std::max(kGrown * options.scale, absl::Microseconds(kFig14Intervals));
    point.options.interval = *point.options.duration / kFig14Intervals;
    e.points.push_back(point);
  }
  e.notes = {
      "The model is replaced by one with more sub-models when there are 300 keys for each; it begins with 200. In the "
      "paper 10M keys begin with 100 for each, and there are twice the sub-models from 200 on.",
      "The load fills all leaves alike, so the first predictions are nearly exact. Inserts at random places fill the "
      "leaves differently, and predictions of 200 keys become less exact, with new sub-models too. So the new model is "
      "better than the old one, but the first rate does not return."};
  return e;
}

Experiment Burst(const Options& options) {
  Experiment e = NewExperiment("burst", "Beside Fig. 14b: a burst of inserts, and the retraining after it",
                               Chart::kTimeline, "milliseconds since the burst began");
  for (const uint64_t rate : {uint64_t{1'000'000}, uint64_t{2'800'000}}) {
    Point point;
    point.series = absl::StrFormat("%.1fM inserts/s", static_cast<double>(rate) * 1e-6);
    point.label = absl::StrFormat("for %.3g ms", absl::ToDoubleMilliseconds(kBurst * options.scale));
    point.options = Fig14Rack(options, rate);
    point.options.warmup = options.Scaled(kBefore);
    point.options.duration = std::max(kFig14Watched * options.scale, absl::Microseconds(kFig14Intervals));
    point.options.interval = *point.options.duration / kFig14Intervals;
    point.options.insert_for = kBurst * options.scale;
    e.points.push_back(point);
  }
  e.notes = {"Throughput over time, reads and inserts together; the machine that inserted is idle after the burst.",
             KeysNote(options)};
  return e;
}

}  // namespace gannet::experiments::xstore
