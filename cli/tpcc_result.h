// Everything that `gannet tpcc` has to report, before it takes a form.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/calibration.h"
#include "cli/tpcc_options.h"
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

struct TpccResult {
  TpccOptions options;
  double load_seconds = 0;
  MemoryReport after_load;

  // Only if there was a run.
  std::optional<tpcc::RunReport> run;
  MemoryReport after_run;
  Calibration before_run_calibration;
  Calibration after_run_calibration;
  bool interrupted = false;

  // Empty if they were not evaluated (prepare).
  std::vector<tpcc::ConditionResult> consistency;
  double check_seconds = 0;

  bool consistent() const;
  // The last that was looked at.
  const MemoryReport& memory() const { return run.has_value() ? after_run : after_load; }
  uint64_t client_cache_bytes() const;
};

// Walks the indexes: slow.
MemoryReport MeasureMemory(std::span<txn::Database* const> databases);

std::string ToText(const TpccResult& result);
std::string ToJson(const TpccResult& result);

}  // namespace gannet::cli
