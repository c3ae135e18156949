// A small cluster for tests: some nodes in this process, the same tables on each, one session per node and more on
// demand.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "rdma/shm/shm_fabric.h"
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
    auto made = rdma::ShmFabric::InProcess(
        {.num_nodes = options.nodes, .bytes_per_node = uint64_t{1} << 30, .adversarial = options.adversarial});
    EXPECT_TRUE(made.ok()) << made.status();
    fabric = std::move(*made);
    for (int node = 0; node < options.nodes; ++node) {
      auto database = Database::Open(fabric.get(), static_cast<rdma::NodeId>(node), {.read_path = options.read_path});
      EXPECT_TRUE(database.ok()) << database.status();
      for (const TableOptions& table : tables) {
        auto created = (*database)->CreateTable(table);
        EXPECT_TRUE(created.ok()) << created.status();
      }
      databases.push_back(std::move(*database));
    }
    // Start waits for all nodes, which are attached by now.
    for (auto& database : databases) {
      const Status started = database->Start();
      EXPECT_TRUE(started.ok()) << started;
    }
  }
  ~Cluster() {
    sessions.clear();
    databases.clear();
  }

  const Table& table(int node, const std::string& name) { return *databases[node]->FindTable(name); }

  // A new session of `node`, owned by the cluster.
  Session& NewSession(int node) {
    auto session = databases[node]->OpenSession();
    EXPECT_TRUE(session.ok()) << session.status();
    sessions.push_back(std::move(*session));
    return *sessions.back();
  }

  std::unique_ptr<rdma::ShmFabric> fabric;
  std::vector<std::unique_ptr<Database>> databases;
  std::vector<std::unique_ptr<Session>> sessions;
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
