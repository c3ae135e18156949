// RunBenchmark: worker threads that run the mix of the five transactions and measure them.
//
// A worker is one OS thread with one session on one node, and runs a number of coroutines, each a loop of transactions.
// Workers are dealt to the nodes in turn, and a node's warehouses to its workers in turn, as their homes; workers share
// them only if the node has fewer warehouses than workers. So terminals are bound to warehouses (clauses 2.4.1.1,
// 2.5.1.1). A transaction's warehouse is one of its worker's homes, its district is any.
//
// Each worker deals its transactions from a deck of 100 cards that holds the mix exactly, shuffled anew for each round.
//
// With `think_time` every district of every home warehouse is a terminal: a coroutine that keys in, runs, and thinks as
// clause 5.2.5 says; `coroutines` is then ignored.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <span>

#include "absl/time/time.h"
#include "base/status.h"
#include "tpcc/report.h"
#include "tpcc/schema.h"
#include "txn/database.h"

namespace gannet::tpcc {

// Of the verb counters when a worker runs several coroutines: see ProcedureReport::verbs.
inline constexpr int kVerbSampleInterval = 64;

struct RunOptions {
  int threads = 1;  // workers of this process, over all its nodes; at least one per node
  // The workers of each node are numbered from here on (keys.h, HISTORY). Processes that run at once and are at home in
  // the same warehouses, as clients are, need ranges of their own.
  uint32_t first_worker = kFirstWorker;
  // Per worker. 0: 1 if the fabric has one node, else 4, but no more over all workers than there are warehouses:
  // Payment changes its warehouse's row, so two at work on one warehouse mostly conflict.
  int coroutines = 0;
  // Per worker: how many transactions may be at work or wait to become durable. A coroutine then goes on with another
  // transaction as soon as its last is visible, and that is acknowledged (and counted, with its latency) when it is
  // durable. 0: a coroutine waits for its own transactions. Without effect with `think_time`.
  int in_flight = 0;
  absl::Duration warmup = absl::Seconds(2);
  absl::Duration duration = absl::Seconds(30);
  std::array<int, kProcedures> mix = {45, 43, 4, 4, 4};  // percent, in the order of Procedure
  bool think_time = false;
  uint64_t seed = 1;
  // Of the population (LoadOptions::seed): the run's constant for last names depends on the load's (clause 2.1.6.1).
  uint64_t load_seed = 1;
  absl::Duration interval = absl::Seconds(1);  // between two calls of the progress callback
  // Set by another thread or a signal handler: the run ends within 100 ms and reports what it measured until then
  // (RunReport::seconds is the real length, perhaps 0). May be null; must live as long as the run.
  const std::atomic<bool>* stop = nullptr;
};

// Called on the thread that called RunBenchmark.
using RunProgress = std::function<void(const IntervalReport&)>;

// Runs on the nodes of this process: `tables[i]` are those of `nodes[i]`. Started databases, loaded tables. `progress`
// may be null. InvalidArgument says which option is wrong. A transaction that fails otherwise than by a conflict or its
// own rollback ends the run with its error.
StatusOr<RunReport> RunBenchmark(std::span<txn::Database* const> nodes, std::span<const Tables> tables,
                                 const RunOptions& options, const RunProgress& progress);

}  // namespace gannet::tpcc
