// RunReport: the results of a TPC-C run. Plain data, which the caller prints.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "index/index.h"
#include "rdma/counters.h"

namespace gannet::tpcc {

enum class Procedure : uint8_t { kNewOrder, kPayment, kOrderStatus, kDelivery, kStockLevel };
inline constexpr int kProcedures = 5;
// By Procedure; also the keys of the JSON report.
inline constexpr std::array<const char*, kProcedures> kProcedureNames = {"new_order", "payment", "order_status",
                                                                         "delivery", "stock_level"};

// One of the five transactions, over the measured window: transactions that ended within it are counted.
struct ProcedureReport {
  uint64_t committed = 0;
  uint64_t aborted = 0;      // attempts that met a conflict and were run again
  uint64_t rolled_back = 0;  // by the user: the 1% of NewOrder with an unused item number

  // Latency in microseconds, from the start of the first attempt to the end of the last one, including back-off.
  // Percentiles are exact within 1%, the maximum is exact. Covers committed and rolled-back transactions; all 0 if
  // there were none.
  double mean_us = 0;
  double p50_us = 0;
  double p90_us = 0;
  double p99_us = 0;
  double max_us = 0;

  // Sum over `verb_samples` transactions (committed and rolled-back ones, with their aborted attempts); divide for the
  // average. If a worker runs one coroutine, every transaction is a sample. If it runs several, one transaction in
  // kVerbSampleInterval (driver.h) runs alone on its worker and is measured.
  rdma::VerbCounters verbs;
  uint64_t verb_samples = 0;
};

struct RunReport {
  double seconds = 0;  // of the measured window
  int threads = 0;
  int coroutines = 0;  // per thread
  int in_flight = 0;   // per thread: RunOptions::in_flight

  std::array<ProcedureReport, kProcedures> procedures;  // indexed by Procedure

  // All transactions. Committed and rolled-back ones count, because both did their whole work.
  double transactions_per_second = 0;
  // Committed NewOrders only.
  double new_orders_per_minute = 0;

  // All verbs of the workers' channels in the window (exact).
  rdma::VerbCounters verbs;

  // Location and learned caches of all workers' sessions at the end, summed by table.
  std::vector<std::pair<std::string, index::ClientStatistics>> client_caches;

  const ProcedureReport& of(Procedure procedure) const { return procedures[static_cast<size_t>(procedure)]; }
};

// The counts of one interval of a run, for live progress.
struct IntervalReport {
  bool warming_up = false;    // the interval ended before the measured window began
  double at_seconds = 0;      // end of the interval, from the start of the warm-up
  double seconds = 0;         // its length
  uint64_t transactions = 0;  // committed or rolled back, all procedures
  uint64_t new_orders = 0;    // committed
  uint64_t aborts = 0;
};

}  // namespace gannet::tpcc
