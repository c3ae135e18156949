// Tables are created and renamed while transactions run, durably and atomically.
#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/txn/catalog_helpers.h"
#include "tests/txn/disk_image.h"
#include "tests/txn/durable_cluster.h"
#include "txn/bulk_loader.h"
#include "txn/run/session.h"

namespace gannet::txn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CatalogChangeTest, OpenSessionsUseANewTable) {
  for (int way = 0; way < 4; ++way) {
    const bool directory = way % 2 == 0;
    const Disk disk = NewDisk();
    auto shm = rdma::ShmFabric::InProcess({.num_nodes = 1, .bytes_per_node = uint64_t{1} << 30});
    NicAtomics nic(shm->get());
    rdma::Fabric* const fabric = way < 2 ? static_cast<rdma::Fabric*>(shm->get()) : &nic;
    DatabaseOptions options;
    if (directory) options = {.directory = "/data", .create_if_missing = true, .files = disk};
    auto database = Database::Open(fabric, 0, options);
    ASSERT_TRUE(database.ok()) << database.status();
    ASSERT_TRUE((*database)->Start().ok());
    auto session = (*database)->OpenSession();
    ASSERT_TRUE(session.ok());
    EXPECT_TRUE((*database)->tables().empty());
    for (const IndexKind kind : {IndexKind::kHash, IndexKind::kXStore, IndexKind::kBlink, IndexKind::kRolex}) {
      const std::string name = absl::StrCat("table ", static_cast<int>(kind));
      const Table* table = nullptr;
      // The transaction began before the table was there.
      const Status done = (*session)->RunBlocking([&](Transaction& t) -> coro::Task<Status> {
        if (table == nullptr) {
          const auto created = (*database)->CreateTable({.name = name, .index = kind, .payload_bytes = 8});
          if (!created.ok()) co_return created.status();
          table = *created;
        }
        for (uint64_t key = 0; key < 100; ++key) GANNET_CO_RETURN_IF_ERROR(t.Insert(*table, key, key));
        co_return absl::OkStatus();
      });
      ASSERT_TRUE(done.ok()) << done;
      EXPECT_EQ((*database)->FindTable(name), table);
      EXPECT_TRUE(absl::IsAlreadyExists((*database)->CreateTable({.name = name, .payload_bytes = 8}).status()));
    }
    for (const TableStatistics& statistics : (*database)->table_statistics()) {
      EXPECT_EQ(statistics.index.keys, 100u) << statistics.table;
      EXPECT_GE(statistics.record_bytes, 100 * 64u) << statistics.table;
    }
    session->reset();
    for (const TableStatistics& statistics : (*database)->table_statistics()) {
      EXPECT_GE(statistics.record_bytes, 100 * 64u) << statistics.table;
    }
    ASSERT_TRUE((*database)->Close().ok());
    const Status closed = (*database)->CreateTable(HashTable("late")).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(closed)) << closed;
    EXPECT_TRUE(absl::IsFailedPrecondition((*database)->RenameTable("table 0", "late")));
  }
}

TEST(CatalogChangeTest, ATableIsRenamed) {
  const Disk disk = NewDisk();
  const Table* table = nullptr;
  {
    auto cluster = Open(disk, {HashTable("a"), HashTable("b")});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    Database& database = (*cluster)->database();
    table = database.FindTable("a");
    const std::string& old_name = table->name();
    ASSERT_TRUE(Put(**cluster, "a", 1, 10).ok());
    EXPECT_TRUE(absl::IsNotFound(database.RenameTable("c", "d")));
    EXPECT_TRUE(absl::IsAlreadyExists(database.RenameTable("a", "b")));
    EXPECT_TRUE(absl::IsInvalidArgument(database.RenameTable("a", "")));
    EXPECT_TRUE(absl::IsInvalidArgument(database.RenameTable("a", "\n")));
    ASSERT_TRUE(database.RenameTable("a", "z").ok());
    EXPECT_EQ(database.FindTable("a"), nullptr);
    EXPECT_EQ(database.FindTable("z"), table);
    EXPECT_EQ(old_name, "a") << "a reference that a reader has stays valid";
    EXPECT_EQ(Get(**cluster, "z", 1).value(), 10u);
    EXPECT_THAT(Message(Get(**cluster, "z", 2).status()), HasSubstr("table 'z', key 2"));
    ASSERT_TRUE(Put(**cluster, "z", 2, 20).ok());
    // The name is free again, and its number is not.
    const auto again = database.CreateTable(HashTable("a"));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ((*again)->id(), 2);
    ASSERT_TRUE(Put(**cluster, "a", 1, 100).ok());
    ASSERT_TRUE(database.Checkpoint().ok());
  }
  auto cluster = Open(disk, {HashTable("z")});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_THAT(Names((*cluster)->database()), ElementsAre("z", "b", "a"));
  EXPECT_EQ(Get(**cluster, "z", 1).value(), 10u);
  EXPECT_EQ(Get(**cluster, "z", 2).value(), 20u);
  EXPECT_EQ(Get(**cluster, "a", 1).value(), 100u);
}

TEST(CatalogChangeTest, NodesOfAClusterSayThatTheyCannot) {
  auto cluster = Open(NewDisk(), {HashTable("a")}, 2);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  for (const Status& refused :
       {(*cluster)->database().CreateTable(HashTable("b")).status(), (*cluster)->database().RenameTable("a", "b")}) {
    EXPECT_TRUE(absl::IsUnimplemented(refused)) << refused;
    EXPECT_THAT(Message(refused), HasSubstr("before it, on every node"));
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(
      (*Database::Open("/data", {.create_if_missing = true, .files = NewDisk(), .memory_bytes = 1 << 28}))
          ->RenameTable("a", "b")));
}

TEST(CatalogChangeTest, ALoadOfANewTableIsDurableByACheckpoint) {
  const Disk disk = NewDisk();
  {
    auto cluster = Open(disk, {HashTable("a")});
    Database& database = (*cluster)->database();
    const auto table = database.CreateTable(OrderedTable("loaded"));
    ASSERT_TRUE(table.ok()) << table.status();
    {
      auto session = database.OpenSession();
      BulkLoader loader(session->get(), *table);
      for (uint64_t key = 0; key < 50; ++key) ASSERT_TRUE(loader.Add(key, key).ok());
      ASSERT_TRUE(loader.Finish().ok());
    }
    ASSERT_TRUE(database.Checkpoint().ok());
  }
  auto cluster = Open(disk);
  for (uint64_t key = 0; key < 50; ++key) EXPECT_EQ(Get(**cluster, "loaded", key).value(), key);
}

// Threads insert into all tables that there are, while tables are created and renamed and checkpoints are taken.
TEST(CatalogChangeTest, TransactionsRunMeanwhile) {
  constexpr int kThreads = 3;
  constexpr int kTables = 300;  // more than one chunk of TableSet
  const Disk disk = NewDisk();
  std::vector<std::vector<std::vector<uint64_t>>> inserted(kThreads);  // by thread and table
  {
    auto cluster = Open(disk, {HashTable("table 0")});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    Database& database = (*cluster)->database();
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      inserted[static_cast<size_t>(i)].resize(kTables);
      threads.emplace_back([&, i] {
        Random random(static_cast<uint64_t>(i) + 1);
        auto session = database.OpenSession();  // before all but one are there
        ASSERT_TRUE(session.ok());
        for (uint64_t n = 0; !stop.load(); ++n) {
          const std::vector<const Table*> tables = database.tables();
          const Table& one = *tables[random.Below(tables.size())];
          const Table& newest = *tables.back();
          const uint64_t key = n * kThreads + static_cast<uint64_t>(i);
          const Status done = (*session)->RunBlocking([&](Transaction& t) -> coro::Task<Status> {
            GANNET_CO_RETURN_IF_ERROR(t.Insert(one, key, key));
            co_return &one == &newest ? absl::OkStatus() : t.Insert(newest, key, key);
          });
          ASSERT_TRUE(done.ok()) << done << " " << one.name();
          inserted[static_cast<size_t>(i)][one.id()].push_back(key);
          if (&one != &newest) inserted[static_cast<size_t>(i)][newest.id()].push_back(key);
        }
      });
    }
    for (int i = 1; i < kTables; ++i) {
      TableOptions table = i % 2 == 0 ? HashTable(absl::StrCat("new ", i)) : OrderedTable(absl::StrCat("new ", i));
      table.expected_rows = 10;
      const auto created = database.CreateTable(table);
      ASSERT_TRUE(created.ok()) << created.status();
      ASSERT_TRUE(database.RenameTable(table.name, absl::StrCat("table ", i)).ok());
      if (i % 100 == 0) {
        ASSERT_TRUE(database.Checkpoint().ok());
      }
      EXPECT_EQ(database.table_statistics().size(), static_cast<size_t>(i) + 1);
      EXPECT_TRUE(database.path_statistics().empty());
    }
    stop.store(true);
    for (std::thread& thread : threads) thread.join();
  }
  auto cluster = Open(disk->CrashedCopy(1));
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  Database& database = (*cluster)->database();
  std::vector<size_t> expected(kTables, 0);
  for (const auto& by_table : inserted) {
    for (size_t id = 0; id < kTables; ++id) {
      expected[id] += by_table[id].size();
      const std::string name = absl::StrCat("table ", id);
      for (const uint64_t key : by_table[id]) ASSERT_EQ(Get(**cluster, name, key).value(), key) << name;
    }
  }
  for (const TableStatistics& statistics : database.table_statistics()) {
    EXPECT_EQ(statistics.index.keys, expected[database.FindTable(statistics.table)->id()]) << statistics.table;
  }
}

// The disk breaks at every operation of a change, by a power cut or by one error. Afterwards the directory has the
// tables before the change or those after it; what was acknowledged, and the rows, are there.
TEST(CatalogChangeTest, ACrashLeavesTheOldCatalogOrTheNewOne) {
  const Disk first = NewDisk();
  {
    auto cluster = Open(first, {HashTable("a")});
    ASSERT_TRUE(Put(**cluster, "a", 1, 1).ok());
    ASSERT_TRUE((*cluster)->Close().ok());
  }
  const DiskImage image = ImageOf(*first);
  std::set<std::string> seen;
  for (const bool power_cut : {true, false}) {
    for (uint64_t at = 1;; ++at) {
      SCOPED_TRACE(testing::Message() << (power_cut ? "power cut" : "error") << " at operation " << at);
      const Disk disk = DiskOf(image, at);
      bool created = false;
      bool renamed = false;
      bool put = false;
      std::atomic<uint64_t> operations{0};
      {
        auto cluster = DurableCluster::Open(disk, {}, {.database = {.durable_within = absl::Milliseconds(20)}});
        ASSERT_TRUE(cluster.ok()) << cluster.status();
        Database& database = (*cluster)->database();
        // Only operations on the manifest are counted: the log's do not depend on the change.
        BreakAtManifest(disk, at, power_cut, &operations);
        created = database.CreateTable(HashTable("b")).ok();
        put = created && Put(**cluster, "b", 2, 2).ok();
        renamed = database.RenameTable("a", "z").ok();
        EXPECT_EQ(database.FindTable("b") != nullptr, created);
        EXPECT_EQ(database.FindTable("z") != nullptr, renamed);
        disk->SetOptions({});
      }
      if (operations.load() < at) {
        EXPECT_GT(at, 6u) << "two replacements of a file have more operations than that";
        break;
      }
      disk->Heal();
      for (uint64_t seed = 1; seed <= 8; ++seed) {
        auto cluster = Open(power_cut ? disk->CrashedCopy(at * 10 + seed) : disk);
        ASSERT_TRUE(cluster.ok()) << cluster.status();
        Database& database = (*cluster)->database();
        const bool has_b = database.FindTable("b") != nullptr;
        const bool has_z = database.FindTable("z") != nullptr;
        EXPECT_NE(database.FindTable("a") != nullptr, has_z);
        EXPECT_TRUE(has_b || !created);
        EXPECT_TRUE(has_z || !renamed);
        EXPECT_EQ(Get(**cluster, has_z ? "z" : "a", 1).value(), 1u);
        if (put) {
          EXPECT_EQ(Get(**cluster, "b", 2).value(), 2u);
        }
        // Whatever is there, the change can be made now.
        if (!has_b) {
          ASSERT_TRUE(database.CreateTable(HashTable("b")).ok());
        }
        ASSERT_TRUE(Put(**cluster, "b", 3, 3).ok());
        if (!power_cut) break;  // one change may have failed alone
        seen.insert(absl::StrCat(has_b ? "b" : "", has_z ? "z" : ""));
      }
    }
  }
  EXPECT_THAT(seen, ElementsAre("", "b", "bz"));
}

}  // namespace
}  // namespace gannet::txn
