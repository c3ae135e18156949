// Everything that `gannet tpcc` reports, before it becomes text or JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/harness/calibration.h"
#include "cli/report/bench_text.h"
#include "cli/tpcc/options.h"
#include "log/log.h"
#include "nlohmann/json.hpp"
#include "rdma/slab.h"
#include "tpcc/consistency.h"
#include "tpcc/report.h"
#include "txn/database.h"

namespace gannet::cli {

struct MemoryReport {
  std::vector<txn::TableStatistics> tables;  // summed over the nodes
  rdma::SlabStatistics heap;                 // summed over the nodes
  uint64_t resident_bytes = 0;               // of the process, as the kernel counts it
};

// The cost and the results of a data directory.
struct DurabilityReport {
  std::string log_description;                // how the log is written
  std::vector<txn::RecoveryReport> recovery;  // per node; empty if nothing was there
  uint64_t checkpoints = 0;                   // taken during the run, all nodes
  // The log from the begin of the warm-up to the last interval, and the transactions that it has.
  log::LogStatistics log;
  uint64_t transactions = 0;
  uint64_t new_orders = 0;
  // The log until the end of the run, when everything acknowledged has been written.
  log::LogStatistics log_of_run;
  double close_seconds = 0;

  // Log bytes, of all transactions, for each committed NewOrder.
  double bytes_per_new_order() const;
  double payload_per_new_order() const;
  double overhead() const;             // bytes of log records / bytes of their payloads
  double write_amplification() const;  // bytes on disk / bytes of payloads
};

struct TpccResult {
  TpccOptions options;
  int slot = 0;             // of a client
  double load_seconds = 0;  // or, from a directory, of the recovery
  MemoryReport after_load;

  // Set only if there was a run.
  std::optional<tpcc::RunReport> run;
  MemoryReport after_run;
  bench::Calibration before_run_calibration;
  bench::Calibration after_run_calibration;
  bool interrupted = false;
  std::optional<DurabilityReport> durability;  // if there is a directory

  // The list is empty if they were not evaluated (prepare).
  std::vector<tpcc::ConditionResult> consistency;
  double check_seconds = 0;
  std::string not_checked;  // why they were not; empty otherwise

  bool consistent() const;
  // The last one that was measured.
  const MemoryReport& memory() const { return run.has_value() ? after_run : after_load; }
  uint64_t client_cache_bytes() const;
};

// Walks the indexes: slow.
MemoryReport MeasureMemory(std::span<txn::Database* const> databases);

// The sums over the nodes.
log::LogStatistics LogStatisticsOf(std::span<txn::Database* const> databases);
log::LogStatistics Difference(const log::LogStatistics& later, const log::LogStatistics& earlier);

std::string ToText(const TpccResult& result, const TextStyle& style);
std::string ToJson(const TpccResult& result);
// A page with plots. There must have been a run.
std::string ToHtml(const TpccResult& result);

// The options in effect, as in the JSON report.
nlohmann::ordered_json ConfigurationJson(const TpccResult& result);
// Names of the kinds of tpcc::IntervalReport.
std::vector<std::string> ProcedureNames();

}  // namespace gannet::cli
