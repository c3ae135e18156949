// BenchWorker: one client thread of a run. Internal to the driver; driver.h describes the run.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/coro/task.h"
#include "base/histogram.h"
#include "base/run_control.h"
#include "base/status.h"
#include "ycsb/client.h"
#include "ycsb/driver.h"
#include "ycsb/key_chooser.h"

namespace gannet::ycsb {

struct KindStatistics {
  uint64_t operations = 0;
  uint64_t finished = 0;
  uint64_t records = 0;
  Histogram latency;
  rdma::VerbCounters verbs;
  uint64_t verb_samples = 0;
};

struct WorkerStatistics {
  std::array<KindStatistics, kKinds> kinds;
  rdma::VerbCounters verbs;
  index::ClientStatistics lookups;
};

class BenchWorker {
 public:
  // Thread `number` of `threads` in the run.
  BenchWorker(Cluster* cluster, const RunOptions* options, int number, int threads, RunControl* control);
  ~BenchWorker();

  // The thread's work, in steps that all workers take together. Errors go to control->Fail.
  void Prepare();
  void Run();
  // Called on the thread that ran it, because a channel belongs to one thread.
  void Close();

  // Number of operations finished so far. Any thread may call it.
  uint64_t operations() const { return live_operations_.load(std::memory_order_relaxed); }
  // Valid after Run.
  const WorkerStatistics& statistics() const { return statistics_; }
  uint64_t inserts_end() const { return keys_.inserts_end(); }

 private:
  // Results of a successful operation.
  struct Outcome {
    Kind kind = Kind::kRead;
    uint64_t records = 0;
  };

  // True if this thread takes part in filling caches. If threads share them, the threads of the first machine fill them
  // for all (driver.cc).
  bool fills_caches() const { return !options_.caches.share_xcache || number_ < options_.threads_per_machine; }
  Status FillCaches();
  void FillLocations();
  Status FillModels(int server);
  // True for a thread that only inserts, at a given rate.
  bool inserts_only() const {
    return options_.insert_rate > 0 && number_ / options_.threads_per_machine == cluster_->options().machines - 1;
  }
  // Time of the next such insert; kNever outside of RunOptions::insert_for.
  uint64_t NextInsertNanos();
  coro::Task<void> Loop(Client* client, bool first);
  coro::Task<void> Profile(Client* client);
  coro::Task<Status> RunOne(Client* client, Outcome* outcome);
  coro::Task<Status> Read(Client* client, uint64_t key);
  coro::Task<Status> Update(Client* client, uint64_t key);
  coro::Task<Status> Insert(Client* client);
  coro::Task<Status> Scan(Client* client, uint64_t from, Outcome* outcome);
  KindStatistics& StatisticsOf(const Outcome& outcome) { return statistics_.kinds[static_cast<size_t>(outcome.kind)]; }
  void Sample(const Outcome& outcome, const rdma::VerbCounters& before);
  // Notices a change of phase: the measured window begins or ends here for this worker.
  void ObservePhase();

  Cluster* const cluster_;
  const RunOptions& options_;
  RunControl* const control_;
  const int number_;
  const int threads_;
  Random random_;
  KeyChooser keys_;
  // On a line of its own, because the driver reads it.
  alignas(64) std::atomic<uint64_t> live_operations_{0};
  alignas(64) WorkerStatistics statistics_;

  std::unique_ptr<Connection> connection_;
  std::vector<std::unique_ptr<Client>> clients_;
  Phase seen_ = Phase::kWarmup;
  int running_ = 0;  // coroutines
  uint64_t next_insert_nanos_ = 0;
  uint64_t measure_nanos_ = 0;  // beginning of the measured window
  rdma::VerbCounters verbs_at_start_;
  index::ClientStatistics lookups_at_start_;
};

}  // namespace gannet::ycsb
