// RunBenchmark: worker threads that run the mix of the five transactions and measure them.
//
// A worker is one OS thread with one session on one node, and runs a number of coroutines, each a loop of transactions.
// Workers are assigned to the nodes in turn, and a node's warehouses to its workers in turn, as their home warehouses;
// workers share a warehouse only if the node has fewer warehouses than workers. So terminals are bound to warehouses
// (clauses 2.4.1.1, 2.5.1.1). A transaction uses one of its worker's home warehouses, and any district.
//
// Each worker deals its transactions from a deck of 100 cards that holds the mix exactly, and is shuffled again for
// each round.
//
// With `think_time` every district of every home warehouse is a terminal: a coroutine that keys in, runs, and thinks as
// clause 5.2.5 says; `coroutines` is then ignored. Workers that share a warehouse have ten terminals each, so give at
// most one worker per warehouse.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>

#include "absl/time/time.h"
#include "base/status.h"
#include "bench/harness/run.h"
#include "tpcc/report.h"
#include "tpcc/schema/schema.h"
#include "txn/database.h"

namespace gannet::tpcc {

// If a worker runs several coroutines, one in this many transactions is sampled for the verb counters: see
// ProcedureReport.
inline constexpr int kVerbSampleInterval = 64;

struct RunOptions : bench::RunOptions {
  RunOptions() {
    warmup = absl::Seconds(2);
    duration = absl::Seconds(30);
  }

  int threads = 1;  // workers of this process, over all its nodes; at least one per node
  // The workers of each node are numbered from here on (keys.h, HISTORY). Processes that run at the same time with the
  // same home warehouses, as clients do, need disjoint ranges.
  uint32_t first_worker = kFirstWorker;
  // Coroutines per worker. 0: 1 if the fabric has one node; otherwise 4 or `in_flight`, but in total at most one per
  // warehouse, because Payment changes its warehouse's row, so two transactions on one warehouse mostly conflict.
  int coroutines = 0;
  // Number for each worker of transactions that may run or wait to become durable. A coroutine continues with another
  // transaction as soon as its previous one is visible; that one is acknowledged (and counted, with its latency) when
  // it is durable. 0: a coroutine waits for its own transactions. Without effect with `think_time`.
  int in_flight = 0;
  std::array<int, kProcedures> mix = {45, 43, 4, 4, 4};  // percent, in the order of Procedure
  bool think_time = false;
  // The seed of the population (LoadOptions::seed): the run's constant for last names depends on the load's (clause
  // 2.1.6.1).
  uint64_t load_seed = 1;
};

// Called on the thread that called RunBenchmark.
using RunProgress = std::function<void(const IntervalReport&)>;

// Runs on the nodes of this process, whose databases are started and whose tables are loaded: `tables[i]` are those of
// `nodes[i]`. `progress` may be null. InvalidArgument says which option is wrong. If a transaction fails for another
// reason than a conflict or its own rollback, the run ends with its error.
StatusOr<RunReport> RunBenchmark(std::span<txn::Database* const> nodes, std::span<const Tables> tables,
                                 const RunOptions& options, const RunProgress& progress);

}  // namespace gannet::tpcc
