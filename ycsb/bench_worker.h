// BenchWorker: one client thread of a run. Internal to the driver; driver.h describes the run.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/coro/task.h"
#include "base/status.h"
#include "bench/harness/operation_statistics.h"
#include "bench/harness/worker.h"
#include "ycsb/client.h"
#include "ycsb/driver.h"
#include "ycsb/key_chooser.h"
#include "ycsb/moving_part.h"

namespace gannet::ycsb {

// The live count of a worker (bench/harness/worker.h).
inline constexpr size_t kOperations = 0;

struct KindStatistics : bench::OperationStatistics {
  uint64_t operations = 0;
  uint64_t finished = 0;
  uint64_t records = 0;
};

struct WorkerStatistics {
  std::array<KindStatistics, kKinds> kinds;
  index::ClientStatistics lookups;
  std::vector<txn::TablePaths> paths;
};

class BenchWorker final : public bench::Worker {
 public:
  // Thread `number` of `threads` in the run. `moving`: null if no keys move.
  BenchWorker(Cluster* cluster, const RunOptions* options, int number, int threads, MovingPart* moving,
              bench::RunControl* control);
  ~BenchWorker() override;

  Status Prepare() override;
  Status Run() override;
  void Close() override;

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
  bool fills_caches() const { return !options_.caches.share || number_ < options_.threads_per_machine; }
  int machine() const { return number_ / options_.threads_per_machine; }
  int number_in_machine() const { return number_ % options_.threads_per_machine; }
  // No keys have moved to this machine yet.
  bool has_no_keys() const { return moving_ != nullptr && machine() == moving_->taker() && moving_->taken() == 0; }
  // The keys on which this thread's machine works, some of which may move; none: all of them.
  std::optional<KeyPart> Part() const;
  Status FillCaches();
  void FillLocations();
  Status FillModels(int server);
  // Does what FillModels does, for kinds whose clients change the index.
  Status FillNodes(int server);
  // True for a thread that only inserts, at a given rate.
  bool inserts_only() const { return options_.insert_rate > 0 && machine() == cluster_->options().machines - 1; }
  // Time of the next such insert; kNever outside of RunOptions::insert_for.
  uint64_t NextInsertNanos();
  coro::Task<void> Loop(Client* client, bool first);
  coro::Task<void> Profile(Client* client);
  coro::Task<Status> RunOne(Client* client, Outcome* outcome);
  // A key for an operation that begins now.
  uint64_t ExistingKey();
  coro::Task<Status> Read(Client* client, uint64_t key);
  coro::Task<Status> Update(Client* client, uint64_t key);
  coro::Task<Status> Insert(Client* client);
  coro::Task<Status> Scan(Client* client, uint64_t from, Outcome* outcome);
  KindStatistics& StatisticsOf(const Outcome& outcome) { return statistics_.kinds[static_cast<size_t>(outcome.kind)]; }
  void Sample(const Outcome& outcome, const rdma::VerbCounters& before);
  const rdma::VerbCounters& VerbsSoFar() const override { return connection_->channel().counters(); }
  void MeasurementBegins() override;
  void MeasurementEnds() override;

  Cluster* const cluster_;
  const RunOptions& options_;
  const int number_;
  const int threads_;
  MovingPart* const moving_;
  Random random_;
  KeyChooser keys_;
  alignas(64) WorkerStatistics statistics_;

  std::unique_ptr<Connection> connection_;
  std::vector<std::unique_ptr<Client>> clients_;
  int running_ = 0;  // coroutines
  uint64_t next_insert_nanos_ = 0;
  uint64_t measure_nanos_ = 0;  // beginning of the measured phase
  index::ClientStatistics lookups_at_start_;
  std::vector<txn::TablePaths> paths_at_start_;
};

}  // namespace gannet::ycsb
