// BenchWorker: one thread of a run. Internal to the driver; driver.h describes the run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/coro/task.h"
#include "base/status.h"
#include "bench/harness/operation_statistics.h"
#include "bench/harness/worker.h"
#include "tpcc/deck.h"
#include "tpcc/driver.h"
#include "tpcc/schema/random.h"
#include "tpcc/terminal.h"
#include "tpcc/unacknowledged.h"

namespace gannet::tpcc {

// Live counts of a worker (bench/harness/worker.h).
enum LiveCount : size_t { kTransactions, kNewOrders, kAborts };

struct ProcedureStatistics : bench::OperationStatistics {
  uint64_t committed = 0;
  uint64_t aborted = 0;
  uint64_t rolled_back = 0;
};

struct WorkerStatistics {
  std::array<ProcedureStatistics, kProcedures> procedures;
  uint64_t skipped_deliveries = 0;
  uint64_t skipped_districts = 0;
  std::vector<std::pair<std::string, index::ClientStatistics>> client_caches;
  std::vector<txn::TablePaths> paths;
};

class BenchWorker final : public bench::Worker {
 public:
  struct Options {
    txn::Database* database = nullptr;
    const Tables* tables = nullptr;
    const RunOptions* run = nullptr;
    int coroutines = 1;
    uint32_t number = kFirstWorker;  // unique among the workers of the node
    std::vector<uint32_t> homes;     // warehouses
    uint64_t seed = 0;
    NonUniform non_uniform;
  };

  BenchWorker(Options options, bench::RunControl* control)
      : Worker(control, kProcedures), options_(std::move(options)) {}

  Status Prepare() override;
  Status Run() override;
  void Close() override;

  // Valid after Run.
  const WorkerStatistics& statistics() const { return statistics_; }

 private:
  // Lets one transaction at a time run alone on the worker, so that its verbs can be separated from the others'.
  struct Gate {
    int inside = 0;
    bool exclusive = false;
  };

  // The first payment number that is not in HISTORY yet for this worker's number.
  Status FindNextPayment();
  InputSource MakeSource(uint64_t stream) const;
  coro::Task<void> Loop(Terminal* terminal, uint32_t home);
  coro::Task<Status> RunOne(Terminal* terminal, Procedure procedure, uint32_t home);
  coro::Task<void> Enter(bool alone);
  void Leave(bool alone);
  // Sleeps, but not past the end of the run.
  coro::Task<void> SleepWhileRunning(uint64_t nanos);
  // True if a coroutine continues before its result is durable.
  bool runs_ahead() const { return options_.run->in_flight != 0 && !options_.run->think_time; }
  // Waits until at most `most` results are unacknowledged.
  coro::Task<Status> AwaitResults(size_t most);
  size_t TellDurable();
  void Record(const Result& result, uint64_t now_nanos);
  const rdma::VerbCounters& VerbsSoFar() const override { return session_->channel().counters(); }
  void MeasurementBegins() override { paths_before_ = session_->path_statistics(); }
  void MeasurementEnds() override { statistics_.paths = txn::PathsBetween(paths_before_, session_->path_statistics()); }
  Date Today(uint64_t now_ns) const { return static_cast<Date>((now_ns + unix_offset_ns_) / 1'000'000'000); }

  const Options options_;
  WorkerStatistics statistics_;
  std::vector<txn::TablePaths> paths_before_;  // the measurement

  std::unique_ptr<txn::Session> session_;
  std::vector<std::unique_ptr<Terminal>> terminals_;
  std::unique_ptr<Office> office_;
  std::unique_ptr<Deck> deck_;
  Gate gate_;
  Unacknowledged unacknowledged_;
  uint32_t until_sample_ = kVerbSampleInterval;
  uint64_t unix_offset_ns_ = 0;  // from the monotonic clock to the time of day
};

}  // namespace gannet::tpcc
