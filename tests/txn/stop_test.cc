// DatabaseOptions::stop: a stopped operation says so, and the directory is as usable as before.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/txn/durable_cluster.h"
#include "tests/txn/worker_history.h"
#include "txn/bulk_loader.h"
#include "txn/database.h"
#include "txn/run/session.h"

namespace gannet::txn {
namespace stop_test {

constexpr uint64_t kRows = 2000;

class StopTest : public ::testing::TestWithParam<int> {  // the number of nodes
 protected:
  static std::vector<TableOptions> Tables() {
    return {HashTable("hash", Placement::ByHash()), OrderedTable("ordered", Placement::ByHash())};
  }
  StatusOr<std::unique_ptr<DurableCluster>> Open() {
    DurableOptions options{.nodes = GetParam()};
    options.database.stop = &stop_;
    return DurableCluster::Open(disk_, Tables(), options);
  }
  std::unique_ptr<DurableCluster> MustOpen() {
    auto cluster = Open();
    EXPECT_TRUE(cluster.ok()) << cluster.status();
    return cluster.ok() ? *std::move(cluster) : nullptr;
  }

  // Sets the flag at the first such operation on a path that contains `text`.
  void StopAt(log::DiskOperation operation, const std::string& text) {
    log::FaultOptions options;
    options.before = [this, operation, text](log::DiskOperation now, const std::string& path) {
      if (now == operation && path.find(text) != std::string::npos) stop_.store(true);
    };
    disk_->SetOptions(std::move(options));
  }
  void GoOn() {
    disk_->SetOptions({});
    stop_.store(false);
  }

  static Status Load(Database& database, const std::string& name, std::atomic<bool>* stop_within = nullptr) {
    auto session = database.OpenSession();
    if (!session.ok()) return session.status();
    const Table& table = *database.FindTable(name);
    BulkLoader loader(session->get(), &table);
    for (uint64_t key = 0; key < kRows; ++key) {
      if (stop_within != nullptr && key == kRows / 2) stop_within->store(true);
      if (table.OwnerOf(key, database.node_id()) != database.node_id()) continue;
      GANNET_RETURN_IF_ERROR(loader.Add(key, key));
    }
    return loader.Finish();
  }
  void LoadAll(DurableCluster& cluster) {
    for (int node = 0; node < GetParam(); ++node) {
      for (const char* name : {"hash", "ordered"}) ASSERT_TRUE(Load(cluster.database(node), name).ok());
    }
  }
  void CheckpointAll(DurableCluster& cluster) {
    for (int node = 0; node < GetParam(); ++node) ASSERT_TRUE(cluster.database(node).Checkpoint().ok());
  }
  uint64_t Rows(DurableCluster& cluster) const {
    uint64_t rows = 0;
    for (int node = 0; node < GetParam(); ++node) {
      for (const TableStatistics& table : cluster.database(node).table_statistics()) rows += table.index.keys;
    }
    return rows;
  }

  const Disk disk_ = NewDisk();
  std::atomic<bool> stop_{false};
};

TEST_P(StopTest, ALoadIsCancelledAndCloseWithoutCheckpointKeepsNothingOfIt) {
  auto cluster = MustOpen();
  ASSERT_NE(cluster, nullptr);
  Database& database = cluster->database();
  ASSERT_TRUE(Load(database, "hash").ok()) << "a whole one, but only of one table";
  const Status stopped = Load(database, "ordered", &stop_);
  EXPECT_TRUE(absl::IsCancelled(stopped)) << stopped;
  EXPECT_TRUE(absl::IsCancelled(database.Checkpoint()));
  std::vector<std::thread> threads;
  for (int node = 0; node < GetParam(); ++node) {
    threads.emplace_back([&, node] { EXPECT_TRUE(cluster->database(node).CloseWithoutCheckpoint().ok()); });
  }
  for (std::thread& thread : threads) thread.join();
  cluster.reset();
  GoOn();
  cluster = MustOpen();
  ASSERT_NE(cluster, nullptr);
  EXPECT_EQ(Rows(*cluster), 0u);
}

// The checkpoint is stopped while the file of the first table is written.
TEST_P(StopTest, ACheckpointIsCancelledAndTheOneBeforeStays) {
  auto cluster = MustOpen();
  ASSERT_NE(cluster, nullptr);
  LoadAll(*cluster);
  CheckpointAll(*cluster);
  Database& database = cluster->database();
  StopAt(log::DiskOperation::kWrite, "checkpoint-");
  const Status stopped = database.Checkpoint();
  EXPECT_TRUE(absl::IsCancelled(stopped)) << stopped;
  const std::shared_ptr<log::FileSystem> crashed = disk_->CrashedCopy(1);
  GoOn();
  EXPECT_TRUE(database.Checkpoint().ok()) << "nothing of the other is in the way";
  EXPECT_TRUE(cluster->Close().ok());
  const auto survivor = DurableCluster::Open(crashed, Tables(), {.nodes = GetParam()});
  ASSERT_TRUE(survivor.ok()) << survivor.status();
  EXPECT_EQ(Rows(**survivor), 2 * kRows);
}

// Close keeps all committed changes, also after a stop.
TEST_P(StopTest, CloseTakesItsCheckpoint) {
  auto cluster = MustOpen();
  ASSERT_NE(cluster, nullptr);
  LoadAll(*cluster);
  stop_.store(true);
  EXPECT_TRUE(cluster->Close().ok());
  GoOn();
  cluster = MustOpen();
  ASSERT_NE(cluster, nullptr);
  EXPECT_EQ(Rows(*cluster), 2 * kRows);
}

TEST_P(StopTest, ARecoveryIsCancelledAndTheNextOneFindsAll) {
  {
    auto cluster = MustOpen();
    ASSERT_NE(cluster, nullptr);
    LoadAll(*cluster);
    CheckpointAll(*cluster);
    for (uint64_t key = 0; key < kRows; key += 100) {
      const Status removed =
          cluster->database().Run([&](BlockingTransaction& t) { return t.Remove(cluster->table("ordered"), key); });
      ASSERT_TRUE(removed.ok()) << removed;
    }
    ASSERT_TRUE(cluster->Close().ok());
  }
  for (const char* file : {"checkpoint-", "log-"}) {
    StopAt(log::DiskOperation::kRead, file);
    const auto stopped = Open();
    EXPECT_TRUE(absl::IsCancelled(stopped.status())) << file << ": " << stopped.status();
    GoOn();
  }
  auto cluster = MustOpen();
  ASSERT_NE(cluster, nullptr);
  EXPECT_EQ(Rows(*cluster), 2 * kRows - kRows / 100);
}

INSTANTIATE_TEST_SUITE_P(Nodes, StopTest, ::testing::Values(1, 2));

}  // namespace stop_test
}  // namespace gannet::txn
