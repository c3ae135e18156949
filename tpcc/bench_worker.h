// BenchWorker: one thread of a run. Internal to the driver; driver.h describes the run.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/coro/task.h"
#include "base/histogram.h"
#include "base/run_control.h"
#include "base/status.h"
#include "tpcc/deck.h"
#include "tpcc/driver.h"
#include "tpcc/random.h"
#include "tpcc/terminal.h"
#include "tpcc/unacknowledged.h"

namespace gannet::tpcc {

// Counters that the driver reads while the worker runs. Only the worker writes them; they have a line of their own.
struct alignas(64) LiveCounters {
  std::atomic<uint64_t> transactions{0};
  std::atomic<uint64_t> new_orders{0};
  std::atomic<uint64_t> aborts{0};
};

struct ProcedureStatistics {
  uint64_t committed = 0;
  uint64_t aborted = 0;
  uint64_t rolled_back = 0;
  Histogram latency;
  rdma::VerbCounters verbs;
  uint64_t verb_samples = 0;
};

struct WorkerStatistics {
  std::array<ProcedureStatistics, kProcedures> procedures;
  rdma::VerbCounters verbs;
  std::vector<std::pair<std::string, index::ClientStatistics>> client_caches;
};

class BenchWorker {
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

  BenchWorker(Options options, RunControl* control) : options_(std::move(options)), control_(control) {}

  // The thread's work, in two steps so that all workers begin together. Errors go to control->Fail.
  void Prepare();
  void Run();

  const LiveCounters& live() const { return live_; }
  // Valid after Run.
  const WorkerStatistics& statistics() const { return statistics_; }

 private:
  // Lets one transaction at a time run alone on the worker, so that its verbs can be separated from the others'.
  struct Gate {
    int inside = 0;
    bool exclusive = false;
  };

  Status Open();
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
  // Notices a change of phase: the measured window begins or ends here for this worker.
  void ObservePhase();
  Date Today(uint64_t now_ns) const { return static_cast<Date>((now_ns + unix_offset_ns_) / 1'000'000'000); }

  const Options options_;
  RunControl* const control_;
  LiveCounters live_;
  WorkerStatistics statistics_;

  std::unique_ptr<txn::Session> session_;
  std::vector<std::unique_ptr<Terminal>> terminals_;
  std::unique_ptr<Office> office_;
  std::unique_ptr<Deck> deck_;
  Phase seen_ = Phase::kWarmup;
  rdma::VerbCounters verbs_at_start_;
  Gate gate_;
  Unacknowledged unacknowledged_;
  uint32_t until_sample_ = kVerbSampleInterval;
  uint64_t unix_offset_ns_ = 0;  // from the monotonic clock to the time of day
};

}  // namespace gannet::tpcc
