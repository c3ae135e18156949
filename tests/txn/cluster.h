// A small cluster for tests: the same tables on each node, sessions on demand. All nodes are in this process, unless
// the program's main chooses otherwise: then the nodes on which the test does not work are separate processes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/clock.h"
#include "base/thread.h"
#include "gtest/gtest.h"
#include "tests/rdma/forked.h"
#include "tests/rdma/test_fabric.h"
#include "txn/database.h"
#include "txn/run/session.h"

namespace gannet::txn {

struct Account {
  int64_t balance = 0;
  int64_t filler[20] = {};  // several lines
};

struct ClusterOptions {
  int nodes = 1;
  bool adversarial = false;
  ReadPathPolicy read_path = ReadPathPolicy::kOneSided;
  std::vector<int> worked_at = {};  // by the test; empty: all nodes
};

class Cluster {
 public:
  explicit Cluster(const ClusterOptions& options, std::vector<TableOptions> tables) {
    made_ = rdma::MakeTestFabric(
        {.num_nodes = options.nodes, .bytes_per_node = uint64_t{1} << 30, .adversarial = options.adversarial});
    const DatabaseOptions all{.read_path = options.read_path, .call_timeout = made_.call_timeout};
    std::vector<int> here;
    for (int node = 0; node < options.nodes; ++node) {
      const bool away = made_.join != nullptr && !options.worked_at.empty() &&
                        std::ranges::find(options.worked_at, node) == options.worked_at.end();
      if (away) {
        others_.push_back(std::make_unique<rdma::Forked>(
            [&](const rdma::Forked::Inside& inside) { return Serve(node, all, tables, inside); }));
      } else {
        here.push_back(node);
      }
    }
    databases.resize(static_cast<size_t>(options.nodes));
    Open(made_.fabric.get(), here, all, tables);
    for (const auto& other : others_) other->AwaitReady();  // it has seen this process before that may leave again
  }
  // A cluster on the test's own fabric, such as a simulated one. It outlives the cluster.
  Cluster(rdma::Fabric* on, const DatabaseOptions& options, const std::vector<TableOptions>& tables) {
    std::vector<int> here;
    for (int node = 0; node < on->num_nodes(); ++node) here.push_back(node);
    databases.resize(here.size());
    Open(on, here, options, tables);
  }
  ~Cluster() {
    sessions.clear();
    databases.clear();
    while (!others_.empty()) others_.pop_back();  // each has the pipes of those before it
  }

  const Table& table(int node, const std::string& name) { return *databases[node]->FindTable(name); }

  // The node dies at once. Where its death is noticed later, as on verbs, everything that it still did until then is
  // complete when this returns.
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

  // The databases by node; null: the node is another process.
  std::vector<std::unique_ptr<Database>> databases;
  std::vector<std::unique_ptr<Session>> sessions;

 private:
  // The main function of a separate process.
  int Serve(int node, const DatabaseOptions& options, const std::vector<TableOptions>& tables,
            const rdma::Forked::Inside& inside) {
    const std::unique_ptr<rdma::Fabric> fabric = made_.join();
    databases.resize(static_cast<size_t>(node) + 1);
    Open(fabric.get(), {node}, options, tables);
    inside.SayReady();
    inside.AwaitEnd();
    databases.clear();
    return testing::Test::HasFailure() ? 1 : 0;
  }

  void Open(rdma::Fabric* on, const std::vector<int>& nodes, const DatabaseOptions& options,
            const std::vector<TableOptions>& tables) {
    for (const int node : nodes) {
      auto database = Database::Open(on, static_cast<rdma::NodeId>(node), options);
      EXPECT_TRUE(database.ok()) << database.status();
      for (const TableOptions& table : tables) {
        auto created = (*database)->CreateTable(table);
        EXPECT_TRUE(created.ok()) << created.status();
      }
      databases[static_cast<size_t>(node)] = std::move(*database);
    }
    // Start waits for all nodes.
    std::vector<Status> started(databases.size());
    {
      std::vector<std::unique_ptr<Thread>> threads;
      for (const int each : nodes) {
        const auto node = static_cast<size_t>(each);
        threads.push_back(std::make_unique<Thread>("start", [&, node] { started[node] = databases[node]->Start(); }));
      }
      for (auto& thread : threads) thread->join();
    }
    for (const Status& status : started) EXPECT_TRUE(status.ok()) << status;
  }

  rdma::TestFabric made_;
  std::vector<std::unique_ptr<rdma::Forked>> others_;  // end after this process has left them
};

// A transaction by hand whose calls block, for tests that fix the interleaving.
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
inline Status RunBlockingBody(Session& session, absl::FunctionRef<Status(BlockingTransaction&)> body) {
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
