// The results of a run of the YCSB bench.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/harness/calibration.h"
#include "bench/harness/rack_usage.h"
#include "bench/ycsb/options.h"
#include "index/index.h"
#include "index/xstore/xstore.h"
#include "log/log.h"
#include "nlohmann/json.hpp"
#include "rdma/slab.h"
#include "ycsb/cluster.h"
#include "ycsb/report.h"

namespace gannet::bench {

struct SimulationReport {
  Usage servers;
  Usage machines;
  uint64_t events = 0;
  uint64_t switches = 0;
  double virtual_seconds = 0;  // everything: training, filling caches, warm-up, run
};

struct YcsbResult {
  YcsbOptions options;
  nlohmann::ordered_json configuration;  // the options in effect, as the report has them: the caller knows the flags
  int slot = 0;                          // of a client of other processes
  double load_seconds = 0;               // real time; 0 if other processes have loaded
  double run_seconds = 0;                // real time, of everything after the load
  ycsb::RunReport run;
  bool interrupted = false;

  // Statistics of all servers together.
  index::Statistics index;
  rdma::SlabStatistics memory;
  std::optional<index::XStore::ModelStatistics> model;  // XStore; averages and sums
  std::optional<log::LogStatistics> log;                // of everything since the start, if writes are logged
  uint64_t resident_bytes = 0;                          // of this process

  std::optional<SimulationReport> simulation;
  Calibration before_run_calibration;  // shm
  Calibration after_run_calibration;
};

// Fills in result's index, memory, model, log and resident_bytes. Walks the indexes: slow. Unavailable if a server that
// is another process is gone.
Status MeasureStore(ycsb::Cluster* cluster, YcsbResult* result);

// The report as a JSON object. Keys are stable. `histogram`: with the distribution of latencies.
std::string ToJson(const YcsbResult& result, bool histogram = false);
// Names of the kinds of ycsb::IntervalReport.
std::vector<std::string> KindNames();

}  // namespace gannet::bench
