// The experiments of `gannet reproduce`: runs of the bench of indexes on a simulated rack, and what the paper measured.
//
// One file for each figure, with a table of its points: a point more is a line more.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/reproduce/tpcc_rack.h"
#include "cli/ycsb_options.h"

namespace gannet::cli {

// What the paper's rack becomes.
struct ReproduceOptions {
  uint64_t keys = 1'000'000;  // the paper: 100M
  double scale = 1;           // of all that is measured: warm-up and window of each point
  ClientThreads clients = {15, 24};
  uint64_t seed = 1;
};

struct PaperValue {
  double value;
  std::string source;  // "table 3", "section 7.2: ..."
};

// Of a run's time, from its measured beginning on.
struct Moment {
  double milliseconds = 0;
  double mops = 0;
};

// Of one run. Shares: 1 is busy all the time.
struct Measured {
  double mops = 0;  // million operations per second
  double mean_us = 0;
  double p50_us = 0;
  double p99_us = 0;
  double reads_per_operation = 0;
  double bytes_per_operation = 0;  // of payload, both ways
  double fallbacks = 0;            // of lookups
  double mean_error_keys = 0;      // of the model, as the paper counts it: see sub_model.h (Quality::range)
  double cache_bytes = 0;          // of one client machine
  double server_cpu = 0;
  double server_nic = 0;
  double server_link = 0;
  std::vector<Moment> timeline;
  std::string report;  // the whole, as of `gannet ycsb --json`
};

struct Point {
  std::string series;
  std::string label;  // of the place on the x axis; the same for all series
  double x = 0;       // for lines
  YcsbOptions options;
  std::optional<TpccRackOptions> tpcc;  // in place of `options`
  std::optional<PaperValue> paper;      // million operations per second
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
  std::vector<std::string> notes;  // how the setting differs from the paper's
};

Experiment Fig10(const ReproduceOptions& options);   // YCSB A-F
Experiment Fig12(const ReproduceOptions& options);   // throughput and latency
Experiment Fig14b(const ReproduceOptions& options);  // reads beside inserts
Experiment Burst(const ReproduceOptions& options);   // and after them
Experiment Fig15b(const ReproduceOptions& options);  // size of the cache
Experiment Fig15d(const ReproduceOptions& options);  // distributions of keys

Experiment Fig16b(const ReproduceOptions& options);  // TPC-C

// In the paper's order.
std::vector<Experiment> XStoreExperiments(const ReproduceOptions& options);

// How a series reads.
enum class System {
  kXStore,     // one-sided, through the learned cache
  kRpc,        // one call each
  kLocations,  // one-sided, XStore with warm location caches at the clients: ours, not the paper's
};
std::string SeriesOf(System system);
void Use(System system, YcsbOptions* options);

// The paper's rack, for the points to change: one server with 24 cores and two ConnectX-4, clients as given.
YcsbOptions PaperRack(const ReproduceOptions& options, char workload, ycsb::Distribution distribution);

}  // namespace gannet::cli
