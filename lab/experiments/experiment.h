// An experiment: its runs on a simulated rack, and, if it is a paper's, what the paper measured. Each paper has a
// folder with a file for each of its figures. The file has a table of the figure's points, with one line for each
// point. The folder paths/ has our own experiments on how the path of an access is chosen, and kinds/ a comparison of
// all kinds of index.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "bench/ycsb/options.h"
#include "lab/experiments/kind_rack/rack.h"
#include "lab/experiments/spatial/rack.h"
#include "lab/experiments/tpcc_rack.h"
#include "nlohmann/json.hpp"

namespace gannet::experiments {

// The setting that replaces the paper's rack. The defaults are those of XStore's.
struct Options {
  uint64_t keys = 1'000'000;  // or rectangles, that are loaded; the paper: 100M
  double scale = 1;           // of all that is measured: warm-up and window of each point
  bench::ClientThreads clients = {15, 24};
  bool spread = true;  // of round trips (rdma/sim/spread.h)
  uint64_t seed = 1;

  // A time that is `at_scale_1` at scale 1; positive, so that the smallest scale is valid.
  absl::Duration Scaled(absl::Duration at_scale_1) const { return std::max(at_scale_1 * scale, absl::Microseconds(1)); }
};

// Part of a report's sentence on its setting: ", simulated" SpreadNote(options).
constexpr const char* SpreadNote(const Options& options) {
  return options.spread ? "" : " without a spread of round trips";
}

// The part of a report's sentence on its clients: "15 machines x 24 client threads".
std::string ClientsNote(int machines, int threads);

struct PaperValue {
  double value;
  std::string source;  // "table 3", "section 7.2: ..."
};

// A piece of a run's time. `milliseconds` is its end, counted from the begin of the measurement.
struct Moment {
  double milliseconds = 0;
  double mops = 0;
  std::optional<double> calls;  // share of the clients' accesses that was made by calls, if the run tells
};

// What one run measured. Shares: 1 is busy all the time.
struct Measured {
  double mops = 0;  // million operations per second; 0: none ended, so the run measured nothing that is per operation
  double mean_us = 0;  // latencies: 0 if no operation whose latency is told has ended
  double p50_us = 0;
  double p99_us = 0;
  double reads_per_operation = 0;
  double bytes_per_operation = 0;     // of payload, both ways
  double fallbacks = 0;               // share of lookups
  double mean_error_keys = 0;         // of the model, as the paper counts it: see sub_model.h (Quality::range)
  double cache_bytes = 0;             // of one client machine
  double retrainings_per_second = 0;  // of single sub-models, warm-up included
  std::optional<double> calls;        // share of the reading accesses that was made by calls, if the run tells
  double server_cpu = 0;
  double server_nic = 0;
  double server_link = 0;
  std::vector<Moment> timeline;
  std::string report;  // the whole report of the run, as JSON

  // `value`, which is per operation; nothing, if the run measured nothing.
  std::optional<double> IfMeasured(double value) const {
    return mops == 0 ? std::nullopt : std::optional<double>(value);
  }
  std::optional<double> p50() const { return p50_us == 0 ? std::nullopt : std::optional<double>(p50_us); }
};

// What keeps the throughput from being higher: "server CPU", "server NIC", "server link", or "clients" if none of the
// servers' parts is busy.
std::string BoundOf(const Measured& measured);

struct Point {
  // True if `options` are those of its run.
  bool is_ycsb() const { return !tpcc.has_value() && !spatial.has_value() && !kind.has_value(); }

  std::string series;
  std::string label;  // name of the place on the x axis; the same for all series
  double x = 0;       // for lines
  bench::YcsbOptions options;
  nlohmann::ordered_json configuration;        // `options` as the report has them
  std::optional<TpccRackOptions> tpcc;         // in place of `options`
  std::optional<SpatialRackOptions> spatial;   // in place of `options`
  std::optional<kind_rack::RackOptions> kind;  // in place of `options`
  std::optional<PaperValue> paper;             // million operations per second
  Measured measured;
};

enum class Chart {
  kBars,               // a group for each label, a bar for each series: throughput
  kLines,              // x, throughput
  kThroughputLatency,  // throughput, median latency
  kTimeline,           // throughput over the time of each point's run
};

struct Experiment {
  std::string id;  // "fig10"
  std::string title;
  Chart chart = Chart::kBars;
  std::string x_axis;
  std::vector<Point> points;
  bool shows_cache = false;        // its report has the memory of a client's cache
  std::vector<std::string> notes;  // how the setting differs from the paper's
};

// The options of every run with pairs of 8 bytes in the entries of an index that its clients change, on NICs of 100
// Gbit/s: the data and the clients of `options`. What is the paper's is left to the caller.
bench::YcsbOptions SmallPairs(const Options& options, ycsb::Distribution distribution, int fill_percent);

// An experiment without points.
Experiment NewExperiment(std::string id, std::string title, Chart chart, std::string x_axis);

}  // namespace gannet::experiments
