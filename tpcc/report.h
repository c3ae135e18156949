// RunReport: the results of a TPC-C run. Plain data, which the caller prints.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench/harness/report.h"
#include "index/index.h"
#include "rdma/statistics.h"
#include "txn/store/statistics.h"

namespace gannet::tpcc {

enum class Procedure : uint8_t { kNewOrder, kPayment, kOrderStatus, kDelivery, kStockLevel };
inline constexpr int kProcedures = 5;
// The names by Procedure; also the keys of the JSON report.
inline constexpr std::array<const char*, kProcedures> kProcedureNames = {"new_order", "payment", "order_status",
                                                                         "delivery", "stock_level"};

// One of the five transactions, or all of them, over the measured phase: transactions that ended within it are counted.
//
// A latency is from the start of the first attempt to the end of the last one, including back-off. The input was drawn
// before: clause 5.3 measures response times from the moment at which the user has entered it. A latency covers
// committed and rolled-back transactions. So do the verbs, with the aborted attempts. If a worker runs one coroutine,
// every transaction is a sample. If it runs several, one transaction in kVerbSampleInterval (driver.h) runs alone on
// its worker and is measured.
struct ProcedureReport : bench::OperationReport {
  uint64_t committed = 0;
  uint64_t aborted = 0;      // attempts that met a conflict and were run again
  uint64_t rolled_back = 0;  // by the user: the 1% of NewOrder with an unused item number
};

// The counts of one interval of a run.
struct IntervalReport : bench::Interval {
  uint64_t transactions = 0;  // committed or rolled back, all procedures
  uint64_t new_orders = 0;    // committed
  uint64_t aborts = 0;
};

struct RunReport {
  double seconds = 0;  // of the measured phase
  int threads = 0;
  int coroutines = 0;  // per thread
  int in_flight = 0;   // per thread: RunOptions::in_flight

  std::array<ProcedureReport, kProcedures> procedures;  // indexed by Procedure
  ProcedureReport all;                                  // `verbs`: those below

  // All transactions. Committed and rolled-back ones count, because both did their whole work.
  double transactions_per_second = 0;
  // The rate of committed NewOrders only.
  double new_orders_per_minute = 0;

  // Deliveries that found no order in a district, and the districts that they skipped (clause 2.7.4.2).
  uint64_t skipped_deliveries = 0;
  uint64_t skipped_districts = 0;
  // True if these are so many that a report must tell: more than one, and more than 1% of the deliveries.
  bool many_deliveries_skipped() const {
    return skipped_deliveries > 1 && 100 * skipped_deliveries > of(Procedure::kDelivery).committed;
  }

  // All verbs of the workers' channels in the measured phase (exact).
  rdma::VerbCounters verbs;

  std::vector<IntervalReport> timeline;  // of the measured phase

  // Location caches of all workers' sessions, and learned caches of all databases, at the end, summed by table.
  std::vector<std::pair<std::string, index::ClientStatistics>> client_caches;

  // How records of other nodes were reached in the measured phase, by table and kind of access.
  std::vector<txn::TablePaths> paths;

  const ProcedureReport& of(Procedure procedure) const { return procedures[static_cast<size_t>(procedure)]; }
};

}  // namespace gannet::tpcc
