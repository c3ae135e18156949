#include "lab/scenario/crash/child.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/random.h"
#include "lab/scenario/crash/message.h"
#include "lab/scenario/crash/workload.h"
#include "log/file/kill_point.h"
#include "rdma/shm/shm_fabric.h"
#include "txn/all_nodes.h"
#include "txn/database.h"
#include "txn/run/session.h"

namespace gannet::scenario::crash {
namespace {

// A database of one or several nodes in this process.
class Child {
 public:
  explicit Child(const ChildOptions& options)
      : options_(options), workload_(Workload::Make(options.test, options.cycle, &pipe_)) {}

  // Opens the database, reports its state, and prepares the workload.
  Status MakeReady();
  // Works until the process is killed.
  void Work();
  Status Close();

 private:
  Status Open();
  void WorkOnThread(int thread);
  static coro::Task<void> Endlessly(coro::Task<Status> work, bool may_end);

  const ChildOptions options_;
  const MessagePipe pipe_{STDOUT_FILENO};
  std::unique_ptr<Workload> workload_;
  std::unique_ptr<rdma::ShmFabric> fabric_;
  std::vector<std::unique_ptr<txn::Database>> owned_;
  std::vector<txn::Database*> databases_;
};

[[noreturn]] void Die(const Status& status) {
  absl::FPrintF(stderr, "gannet crashtest: the child failed: %s\n", status.ToString());
  std::fflush(stderr);
  _exit(EXIT_FAILURE);
}

void Arm(const ChildOptions& options) {
  if (options.kill_point.empty()) return;
  if (const Status armed = log::ArmKillPoint(options.kill_point, options.kill_count); !armed.ok()) Die(armed);
}

// Small segments and buffers, so that rare events happen often.
txn::DatabaseOptions DatabaseOptionsOf(const ChildOptions& options) {
  txn::DatabaseOptions database;
  database.directory = options.test.directory;
  database.create_if_missing = options.create;
  database.durability = options.test.mode;
  database.medium = options.test.medium;
  database.group_commit = options.group_commit;
  database.durable_within = absl::Seconds(60);
  database.checkpoint_every = options.checkpoint_every;
  // Without an interval every other cycle has checkpoints because of the size of the log.
  database.checkpoint_log_multiple =
      options.checkpoint_every == absl::ZeroDuration() && options.cycle % 2 == 0 ? 0.25 : 0;
  database.checkpoint_log_least_bytes = uint64_t{256} << 10;
  database.log_segment_bytes = uint64_t{1} << 20;
  database.log_buffer_bytes = size_t{64} << 10;
  database.application = "crashtest " + NameOf(options.test.workload);
  // In half of the cycles inserts at other nodes are made by verbs where clients may change the index.
  if (Mix64(options.test.seed + options.cycle) % 2 == 0) database.read_path = txn::ReadPathPolicy::kOneSided;
  return database;
}

Status Child::Open() {
  auto fabric = rdma::ShmFabric::InProcess({.num_nodes = options_.test.nodes, .bytes_per_node = uint64_t{1} << 30});
  if (!fabric.ok()) return fabric.status();
  fabric_ = *std::move(fabric);
  for (int node = 0; node < options_.test.nodes; ++node) {
    auto database = txn::Database::Open(fabric_.get(), static_cast<rdma::NodeId>(node), DatabaseOptionsOf(options_));
    if (!database.ok()) return database.status();
    GANNET_RETURN_IF_ERROR(workload_->CreateTables(**database));
    databases_.push_back(database->get());
    owned_.push_back(*std::move(database));
  }
  const uint64_t start = NowNanos();
  GANNET_RETURN_IF_ERROR(txn::OnAllNodes(databases_, [](txn::Database& database) { return database.Start(); }));
  Message recovered{.kind = MessageKind::kRecovered, .b = NowNanos() - start};
  for (const txn::Database* database : databases_) {
    recovered.number += database->recovery().records;
    recovered.a = database->recovery().recovered_epoch;
  }
  pipe_.Send(recovered);
  return absl::OkStatus();
}

Status Child::MakeReady() {
  GANNET_RETURN_IF_ERROR(Open());
  GANNET_RETURN_IF_ERROR(workload_->TellState(databases_));
  return workload_->Prepare(databases_);
}

Status Child::Close() {
  GANNET_RETURN_IF_ERROR(txn::OnAllNodes(databases_, [](txn::Database& database) { return database.Close(); }));
  pipe_.Send({.kind = MessageKind::kClosed});
  return absl::OkStatus();
}

coro::Task<void> Child::Endlessly(coro::Task<Status> work, bool may_end) {
  const Status status = co_await work;
  if (!status.ok()) Die(status);
  if (!may_end) Die(absl::InternalError("a worker ended"));
}

void Child::WorkOnThread(int thread) {
  txn::Database* const database = databases_[static_cast<size_t>(thread) % databases_.size()];
  const StatusOr<std::unique_ptr<txn::Session>> session = database->OpenSession();
  if (!session.ok()) Die(session.status());
  const int coroutines = options_.test.coroutines;
  for (int i = 0; i < coroutines; ++i) {
    coro::Task<Status> work = workload_->Work(session->get(), static_cast<uint32_t>(thread * coroutines + i));
    (*session)->worker().Spawn(Endlessly(std::move(work), /*may_end=*/false));
  }
  const uint64_t seed = Mix64(options_.test.seed + options_.cycle) ^ static_cast<uint64_t>(thread);
  coro::Task<Status> observe = workload_->Observe(session->get(), seed);
  (*session)->worker().Spawn(Endlessly(std::move(observe), /*may_end=*/true));
  (*session)->worker().Run();
}

void Child::Work() {
  pipe_.Send({.kind = MessageKind::kRunning});
  std::vector<std::thread> threads;
  threads.emplace_back([this] {
    if (const Status status = workload_->WorkBeside(databases_); !status.ok()) Die(status);
  });
  for (int thread = 0; thread < options_.test.threads; ++thread) {
    threads.emplace_back([this, thread] { WorkOnThread(thread); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

void RunChild(const ChildOptions& options) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // without the parent nothing else would end it
  if (options.armed_from_start) Arm(options);
  Child child(options);
  const Status ready = child.MakeReady();
  if (!ready.ok()) Die(ready);
  if (!options.armed_from_start) Arm(options);
  if (!options.finish) child.Work();
  if (const Status closed = child.Close(); !closed.ok()) Die(closed);
}

}  // namespace gannet::scenario::crash
