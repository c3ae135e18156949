// Bulk loads are not logged: a crash may remove a whole load, but never half of one, and never one on which a surviving
// change depends.
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/txn/durable_cluster.h"
#include "tests/txn/worker_history.h"
#include "txn/bulk_loader.h"
#include "txn/database.h"
#include "txn/run/session.h"

namespace gannet::txn {
namespace bulk_load_crash_test {

using ::testing::HasSubstr;

constexpr uint64_t kRows = 2000;
constexpr uint64_t kLoaded = 7;    // value that a load stores in a row
constexpr uint64_t kChanged = 99;  // value that a transaction stores there

// "first" is written to a checkpoint before "second".
std::vector<TableOptions> Tables() {
  Placement placement = Placement::ByHash();
  placement.owner = [](const Key& key, int nodes) {
    return static_cast<rdma::NodeId>(key.integer() % static_cast<uint64_t>(nodes));
  };
  return {HashTable("first", placement), OrderedTable("second", placement)};
}

Status Load(Database& database, const std::string& name) {
  auto session = database.OpenSession();
  if (!session.ok()) return session.status();
  const Table& table = *database.FindTable(name);
  BulkLoader loader(session->get(), &table);
  for (uint64_t key = 0; key < kRows; ++key) {
    if (table.OwnerOf(key, database.node_id()) != database.node_id()) continue;
    GANNET_RETURN_IF_ERROR(loader.Add(key, kLoaded));
  }
  return loader.Finish();
}

Status Change(Database& database, const std::string& name, uint64_t key) {
  return database.Run([&](BlockingTransaction& t) { return t.Update(*database.FindTable(name), key, kChanged); });
}

std::optional<uint64_t> Read(Database& database, const std::string& name, uint64_t key) {
  uint64_t value = 0;
  const Status status =
      database.Run([&](BlockingTransaction& t) { return t.Get(*database.FindTable(name), key, &value); });
  if (absl::IsNotFound(status)) return std::nullopt;
  EXPECT_TRUE(status.ok()) << status;
  return value;
}

uint64_t RowsOf(Database& database, const std::string& name) {
  for (const TableStatistics& table : database.table_statistics()) {
    if (table.table == name) return table.index.keys;
  }
  return 0;
}

std::unique_ptr<DurableCluster> Open(const std::shared_ptr<log::FileSystem>& disk, const DurableOptions& options = {}) {
  auto cluster = DurableCluster::Open(disk, Tables(), options);
  EXPECT_TRUE(cluster.ok()) << cluster.status();
  return cluster.ok() ? *std::move(cluster) : nullptr;
}

// State after a crash now: the number of the table's rows, and whether row `key` has the change.
struct Left {
  uint64_t rows;
  bool changed;
};
Left AfterCrash(const log::FaultyFileSystem& disk, const std::string& name, uint64_t key, int nodes = 1) {
  Left left{};
  const std::shared_ptr<log::FileSystem> copy = disk.CrashedCopy(5);
  auto survivor = Open(copy, {.nodes = nodes});
  if (survivor == nullptr) return left;
  for (int node = 0; node < nodes; ++node) left.rows += RowsOf(survivor->database(node), name);
  left.changed = Read(survivor->database(), name, key) == kChanged;
  return left;
}

// Blocks the first operation on a path that contains a certain text, until it is released.
class Gate {
 public:
  Gate(log::FaultyFileSystem* disk, log::DiskOperation operation, std::string path_contains) : disk_(disk) {
    log::FaultOptions options;
    options.before = [this, operation, text = std::move(path_contains)](log::DiskOperation now,
                                                                        const std::string& path) {
      if (now == operation && path.find(text) != std::string::npos) Hold();
    };
    disk->SetOptions(std::move(options));
  }
  ~Gate() {
    Open();
    disk_->SetOptions({});
  }
  void AwaitArrival() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return arrived_; });
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  void Hold() {
    std::unique_lock lock(mutex_);
    if (std::exchange(arrived_, true)) return;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }

  log::FaultyFileSystem* disk_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool arrived_ = false;
  bool open_ = false;
};

TEST(BulkLoadCrashTest, CommitsAreRefusedUntilTheCheckpointIsWhole) {
  const Disk disk = NewDisk();
  auto cluster = Open(disk);
  ASSERT_NE(cluster, nullptr);
  Database& database = cluster->database();
  ASSERT_TRUE(Load(database, "first").ok());
  Gate gate(disk.get(), log::DiskOperation::kWrite, "checkpoint-");
  Status taken;
  std::thread checkpoint([&] { taken = database.Checkpoint(); });
  gate.AwaitArrival();
  const Status early = Change(database, "first", 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(early)) << early;
  const Left left = AfterCrash(*disk, "first", 1);
  EXPECT_TRUE(left.rows == 0 && !left.changed) << left.rows << " rows, and the change: " << left.changed;
  gate.Open();
  checkpoint.join();
  ASSERT_TRUE(taken.ok()) << taken;
  const Status late = Change(database, "first", 1);
  EXPECT_TRUE(late.ok()) << late;
  const Left after = AfterCrash(*disk, "first", 1);
  EXPECT_EQ(after.rows, kRows);
  EXPECT_TRUE(after.changed);
}

// The table is loaded after the walk has passed it: that checkpoint does not have the load.
TEST(BulkLoadCrashTest, ALoadBesideACheckpointIsNotBelievedSaved) {
  const Disk disk = NewDisk();
  auto cluster = Open(disk);
  ASSERT_NE(cluster, nullptr);
  Database& database = cluster->database();
  ASSERT_TRUE(Load(database, "second").ok());
  Gate gate(disk.get(), log::DiskOperation::kWrite, "checkpoint-");
  Status taken;
  std::thread checkpoint([&] { taken = database.Checkpoint(); });
  gate.AwaitArrival();  // at the file of "second": nothing of "first" is written
  ASSERT_TRUE(Load(database, "first").ok());
  gate.Open();
  checkpoint.join();
  ASSERT_TRUE(taken.ok()) << taken;
  const Status early = Change(database, "first", 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(early)) << early;
  EXPECT_EQ(AfterCrash(*disk, "first", 1).rows, 0u);
  EXPECT_EQ(AfterCrash(*disk, "second", 1).rows, kRows);
  ASSERT_TRUE(database.Checkpoint().ok());
  const Status late = Change(database, "first", 1);
  EXPECT_TRUE(late.ok()) << late;
  EXPECT_TRUE(AfterCrash(*disk, "first", 1).changed);
}

TEST(BulkLoadCrashTest, ACheckpointThatFailsSavesNothing) {
  const Disk disk = NewDisk();
  auto cluster = Open(disk);
  ASSERT_NE(cluster, nullptr);
  Database& database = cluster->database();
  ASSERT_TRUE(Load(database, "first").ok());
  for (const std::string_view path : {"checkpoint-", "MANIFEST"}) {
    disk->Schedule({.operation = log::DiskOperation::kWrite, .after = 1, .path_contains = std::string(path)});
    disk->Schedule({.operation = log::DiskOperation::kRename, .path_contains = std::string(path)});
    const Status failed = database.Checkpoint();
    EXPECT_FALSE(failed.ok()) << path;
    const Status refused = Change(database, "first", 1);
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    disk->Heal();
  }
  ASSERT_TRUE(Load(database, "second").ok()) << "two loads that one checkpoint saves";
  ASSERT_TRUE(database.Checkpoint().ok());
  EXPECT_TRUE(Change(database, "first", 1).ok());
  EXPECT_TRUE(Change(database, "second", 1).ok());
  EXPECT_EQ(AfterCrash(*disk, "first", 1).rows, kRows);
  EXPECT_EQ(AfterCrash(*disk, "second", 1).rows, kRows);
}

TEST(BulkLoadCrashTest, ALoadOfNothingHoldsNothingUp) {
  const Disk disk = NewDisk();
  auto cluster = Open(disk);
  ASSERT_NE(cluster, nullptr);
  Database& database = cluster->database();
  ASSERT_TRUE(Load(database, "first").ok());
  ASSERT_TRUE(database.Checkpoint().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(Load(database, "first"))) << "it is not empty";
  auto session = database.OpenSession();
  ASSERT_TRUE(session.ok());
  EXPECT_TRUE(BulkLoader(session->get(), database.FindTable("second")).Finish().ok());
  const Status changed = Change(database, "first", 1);
  EXPECT_TRUE(changed.ok()) << changed;
}

// The coordinator has loaded nothing: it learns of the load from the node that owns the rows.
TEST(BulkLoadCrashTest, TheOwnerRefusesWhatOthersCommit) {
  const Disk disk = NewDisk();
  auto cluster = Open(disk, {.nodes = 2});
  ASSERT_NE(cluster, nullptr);
  ASSERT_TRUE(Load(cluster->database(0), "first").ok());
  const Table& first = cluster->table("first", 1);
  const Table& second = cluster->table("second", 1);
  const std::vector<std::function<Status(BlockingTransaction&)>> changes = {
      [&](BlockingTransaction& t) { return t.Update(first, uint64_t{2}, kChanged); },
      [&](BlockingTransaction& t) { return t.Remove(first, uint64_t{4}); },
      [&](BlockingTransaction& t) { return t.Insert(second, uint64_t{6}, kChanged); },
  };
  for (const auto& change : changes) {
    const Status refused = cluster->database(1).Run(change);
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("node 0"));
  }
  EXPECT_EQ(Read(cluster->database(1), "first", 2), kLoaded) << "reads go on, and nothing stays locked";
  EXPECT_EQ(Read(cluster->database(1), "first", 4), kLoaded);
  EXPECT_EQ(Read(cluster->database(1), "second", 6), std::nullopt);
  EXPECT_FALSE(AfterCrash(*disk, "first", 2, 2).changed);

  // A change that depends on loaded rows must not outlive them either, on any node.
  const Status resting = cluster->database(1).Run([&](BlockingTransaction& t) -> Status {
    uint64_t value = 0;
    GANNET_RETURN_IF_ERROR(t.Get(first, uint64_t{2}, &value));
    return t.Insert(second, uint64_t{1}, value);
  });
  EXPECT_TRUE(absl::IsFailedPrecondition(resting)) << resting;
  const Status own =
      cluster->database(1).Run([&](BlockingTransaction& t) { return t.Insert(second, uint64_t{3}, kChanged); });
  EXPECT_TRUE(own.ok()) << own << ": it has to do with node 1 alone";

  ASSERT_TRUE(cluster->database(0).Checkpoint().ok());
  const Status late = Change(cluster->database(1), "first", 2);
  EXPECT_TRUE(late.ok()) << late;
  const Left after = AfterCrash(*disk, "first", 2, 2);
  EXPECT_EQ(after.rows, kRows / 2);
  EXPECT_TRUE(after.changed);
}

TEST(BulkLoadCrashTest, CloseSavesWhatNoCheckpointHas) {
  for (const DurabilityMode mode : {DurabilityMode::kSync, DurabilityMode::kAsync, DurabilityMode::kNone}) {
    const Disk disk = NewDisk();
    const DurableOptions options{.nodes = 2, .database = {.durability = mode}};
    auto cluster = Open(disk, options);
    ASSERT_NE(cluster, nullptr);
    for (int node = 0; node < 2; ++node) ASSERT_TRUE(Load(cluster->database(node), "second").ok());
    const Status changed = Change(cluster->database(1), "second", 0);
    EXPECT_EQ(changed.ok(), mode == DurabilityMode::kNone) << changed;
    const Status closed = cluster->Close();
    ASSERT_TRUE(closed.ok()) << closed;
    cluster.reset();
    cluster = Open(disk, options);
    ASSERT_NE(cluster, nullptr);
    EXPECT_EQ(RowsOf(cluster->database(0), "second") + RowsOf(cluster->database(1), "second"), kRows);
    const Status late = Change(cluster->database(1), "second", 0);
    EXPECT_TRUE(late.ok()) << late;
  }
}

// Checkpoints follow one another while tables are loaded: each has all of a load or nothing of it, and every committed
// change depends on a load that a checkpoint has.
TEST(BulkLoadCrashTest, PeriodicCheckpointsHaveAllOfALoadOrNothing) {
  for (uint64_t round = 0; round < 6; ++round) {
    const Disk disk = NewDisk(round + 1);
    auto cluster = Open(disk, {.database = {.checkpoint_every = absl::Microseconds(200)}});
    ASSERT_NE(cluster, nullptr);
    Database& database = cluster->database();
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    threads.emplace_back([&] {
      for (const char* name : {"first", "second"}) {
        const Status loaded = Load(database, name);
        EXPECT_TRUE(loaded.ok()) << loaded;
      }
    });
    for (const std::string name : {"first", "second"}) {
      threads.emplace_back([&, name] {
        while (!stop.load()) {
          const Status status = Change(database, name, 3);
          EXPECT_TRUE(status.ok() || absl::IsNotFound(status) || absl::IsFailedPrecondition(status)) << status;
          if (status.ok()) return;
        }
      });
    }
    std::vector<std::unique_ptr<log::FaultyFileSystem>> copies;
    for (uint64_t i = 0; i < 10; ++i) copies.push_back(disk->CrashedCopy(i));
    threads[0].join();
    for (uint64_t i = 0; i < 3; ++i) copies.push_back(disk->CrashedCopy(i));
    ASSERT_TRUE(database.Checkpoint().ok());
    for (size_t i = 1; i < threads.size(); ++i) threads[i].join();
    for (auto& copy : copies) {
      auto survivor = Open(std::shared_ptr<log::FileSystem>(std::move(copy)));
      ASSERT_NE(survivor, nullptr);
      for (const std::string name : {"first", "second"}) {
        const uint64_t rows = RowsOf(survivor->database(), name);
        EXPECT_TRUE(rows == 0 || rows == kRows) << name << " has " << rows << " rows in round " << round;
      }
    }
  }
}

}  // namespace bulk_load_crash_test
}  // namespace gannet::txn
