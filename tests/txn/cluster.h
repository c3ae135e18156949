// A small cluster for tests: some nodes in this process, the same tables on each, one session per node and more on
// demand.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "rdma/base/clock.h"
#include "rdma/base/thread.h"
#include "tests/rdma/test_fabric.h"
#include "txn/database.h"

namespace gannet::txn {

struct Account {
  int64_t balance = 0;
  int64_t filler[20] = {};  // several lines
};

struct ClusterOptions {
  int nodes = 1;
  bool adversarial = false;
  ReadPathPolicy read_path = ReadPathPolicy::kOneSided;
};

class Cluster {
 public:
  explicit Cluster(const ClusterOptions& options, std::vector<TableOptions> tables) {
    made_ = rdma::MakeTestFabric(
        {.num_nodes = options.nodes, .bytes_per_node = uint64_t{1} << 30, .adversarial = options.adversarial});
    Open(made_.fabric.get(), options.nodes, {.read_path = options.read_path, .call_timeout = made_.call_timeout},
         tables);
  }
  // On a fabric of the test's own (which outlives the cluster), such as a simulated one.
  Cluster(rdma::Fabric* on, const DatabaseOptions& options, const std::vector<TableOptions>& tables) {
    Open(on, on->num_nodes(), options, tables);
  }
  ~Cluster() {
    sessions.clear();
    databases.clear();
  }

  const Table& table(int node, const std::string& name) { return *databases[node]->FindTable(name); }

  // The node dies on the spot. Where that is noticed later, as on verbs, what it still did until then is over when this
  // returns.
  void Kill(rdma::NodeId node) {
    made_.kill(node);
    const uint64_t deadline = NowNanos() + 60'000'000'000;
    while (made_.fabric->Alive(node) && NowNanos() < deadline) SleepForNanos(1'000'000);
    ASSERT_FALSE(made_.fabric->Alive(node)) << "nobody notices that it died";
  }

  // A new session of `node`, owned by the cluster.
  Session& NewSession(int node) {
    auto session = databases[node]->OpenSession();
    EXPECT_TRUE(session.ok()) << session.status();
    sessions.push_back(std::move(*session));
    return *sessions.back();
  }

  std::vector<std::unique_ptr<Database>> databases;
  std::vector<std::unique_ptr<Session>> sessions;

 private:
  void Open(rdma::Fabric* on, int nodes, const DatabaseOptions& options, const std::vector<TableOptions>& tables) {
    for (int node = 0; node < nodes; ++node) {
      auto database = Database::Open(on, static_cast<rdma::NodeId>(node), options);
      EXPECT_TRUE(database.ok()) << database.status();
      for (const TableOptions& table : tables) {
        auto created = (*database)->CreateTable(table);
        EXPECT_TRUE(created.ok()) << created.status();
      }
      databases.push_back(std::move(*database));
    }
    // Start waits for all nodes.
    std::vector<Status> started(databases.size());
    {
      std::vector<std::unique_ptr<Thread>> threads;
      for (size_t node = 0; node < databases.size(); ++node) {
        threads.push_back(std::make_unique<Thread>("start", [&, node] { started[node] = databases[node]->Start(); }));
      }
      for (auto& thread : threads) thread->join();
    }
    for (const Status& status : started) EXPECT_TRUE(status.ok()) << status;
  }

  rdma::TestFabric made_;
};

// A transaction by hand whose calls block: for interleavings that a test spells out.
class Step {
 public:
  explicit Step(Session& session)
      : transaction_(session.Begin()), blocking_(&transaction_, &session.worker()), worker_(&session.worker()) {}
  BlockingTransaction* operator->() { return &blocking_; }
  Status Commit() {
    coro::Async<Status> commit = transaction_.Commit();
    return commit.ready() ? commit.value() : worker_->BlockOn(std::move(commit.task()));
  }
  void Rollback() { transaction_.Rollback(); }
  Transaction& transaction() { return transaction_; }

 private:
  Transaction transaction_;
  BlockingTransaction blocking_;
  coro::Worker* worker_;
};

// Runs a blocking body on `session` with retries.
template <class Body>
Status RunBlockingBody(Session& session, Body body) {
  for (int attempt = 0; attempt < 100000; ++attempt) {
    Step step(session);
    BlockingTransaction* t = step.operator->();
    Status status = body(*t);
    if (status.ok()) status = step.Commit();
    if (!absl::IsAborted(status)) return status;
  }
  return absl::DeadlineExceededError("100,000 attempts met a conflict");
}

}  // namespace gannet::txn
