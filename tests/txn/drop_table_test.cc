// Tables are dropped while transactions run: durably and atomically, and their memory and disk space are free again.
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/thread.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "log/manifest/manifest.h"
#include "tests/txn/catalog_helpers.h"
#include "tests/txn/disk_image.h"
#include "tests/txn/table_kinds.h"
#include "txn/bulk_loader.h"
#include "txn/durable/catalog.h"
#include "txn/run/database_state.h"
#include "txn/run/manual_transaction.h"
#include "txn/run/session.h"

namespace gannet::txn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr size_t kPayload = 100;

Status Fill(Session& session, const Table& table, uint64_t rows) {
  const std::array<std::byte, kPayload> payload{};
  for (uint64_t n = 0; n < rows;) {
    const uint64_t end = std::min(rows, n + 50);
    const Status filled = session.RunBlocking([&](Transaction& t) -> coro::Task<Status> {
      for (uint64_t i = n; i < end; ++i) {
        const index::OwnedKey key = KeyOf(table.options(), i);
        GANNET_CO_RETURN_IF_ERROR(t.Insert(table, key.view(), std::span(payload).first(i % kPayload)));
      }
      co_return absl::OkStatus();
    });
    if (!filled.ok()) return filled;
    n = end;
  }
  return absl::OkStatus();
}

uint64_t TakenBytes(const Database& database) {
  const rdma::SlabStatistics memory = database.memory_statistics();
  return memory.carved_bytes - memory.free_bytes;
}

// All memory of a dropped table is used again: the rounds after the first take nothing new. In the second way the
// sessions take the paths to another node, and have caches and borrowed blocks of their own.
TEST(DropTableTest, ItsMemoryIsFree) {
  constexpr uint64_t kRows = 3000;
  for (const bool direct : {true, false}) {
    auto shm = rdma::ShmFabric::InProcess({.num_nodes = 1, .bytes_per_node = uint64_t{1} << 30});
    NicAtomics nic(shm->get());
    auto database = Database::Open(direct ? static_cast<rdma::Fabric*>(shm->get()) : &nic, 0, {});
    ASSERT_TRUE(database.ok()) << database.status();
    ASSERT_TRUE((*database)->Start().ok());
    const auto stays = (*database)->CreateTable({.name = "stays", .payload_bytes = 8});
    for (const TableOptions& options : AllKinds(kPayload, /*variable_length=*/true)) {
      SCOPED_TRACE(absl::StrCat(options.name, direct ? "" : ", as from another node"));
      uint64_t first = 0;
      for (int round = 0; round < 6; ++round) {
        auto session = (*database)->OpenSession();
        ASSERT_TRUE(session.ok()) << session.status();
        const auto table = (*database)->CreateTable(options);
        ASSERT_TRUE(table.ok()) << table.status();
        ASSERT_TRUE(Fill(**session, **table, kRows).ok());
        const Status dropped = (*database)->DropTable(options.name);
        ASSERT_TRUE(dropped.ok()) << dropped;
        EXPECT_EQ((*database)->FindTable(options.name), nullptr);
        const Status late = (*session)->RunBlocking([&](Transaction& t) -> coro::Task<Status> {
          uint64_t value = 0;
          const index::OwnedKey key = KeyOf(options, 1);
          co_return co_await t.Get(**table, key.view(), std::as_writable_bytes(std::span(&value, 1)));
        });
        EXPECT_TRUE(absl::IsFailedPrecondition(late)) << late;
        EXPECT_THAT(Message(late), HasSubstr(absl::StrCat("table '", options.name, "' has been dropped")));
        session->reset();
        if (round > 0) continue;
        SleepForNanos(100'000'000);  // the first figure, too, is without such blocks
        first = TakenBytes(**database);
      }
      // Blocks whose grace period is not over are free a little later.
      const uint64_t most = first + (uint64_t{64} << 10);
      const uint64_t deadline = NowNanos() + 10'000'000'000;
      while (TakenBytes(**database) > most && NowNanos() < deadline) SleepForNanos(10'000'000);
      EXPECT_LE(TakenBytes(**database), most);
    }
    EXPECT_EQ((*database)->table_statistics().size(), 1u);
    EXPECT_TRUE((*database)->Run([&](BlockingTransaction& t) { return t.Insert(**stays, 1, uint64_t{1}); }).ok());
    ASSERT_TRUE((*database)->Close().ok());
  }
}

TEST(DropTableTest, EveryAccessIsRefused) {
  auto database = Database::OpenInMemory({.memory_bytes = uint64_t{1} << 28});
  ASSERT_TRUE(database.ok()) << database.status();
  EXPECT_TRUE(absl::IsFailedPrecondition((*database)->DropTable("a")));
  ASSERT_TRUE((*database)->Start().ok());
  const Table& a = **(*database)->CreateTable(OrderedTable("a"));
  const Table& boxes = **(*database)->CreateTable({.name = "boxes",
                                                   .key_kind = index::KeyKind::kBytes,
                                                   .max_key_bytes = index::RectangleKey::kBytes,
                                                   .index = IndexKind::kCatfish,
                                                   .payload_bytes = 8});
  auto session = (*database)->OpenSession();
  BulkLoader loader(session->get(), &a);
  ASSERT_TRUE(loader.Add(1, uint64_t{1}).ok());
  EXPECT_TRUE(absl::IsNotFound((*database)->DropTable("b")));
  EXPECT_TRUE((*database)->DropTable("a").ok());
  EXPECT_TRUE((*database)->DropTable("boxes").ok());
  EXPECT_TRUE(absl::IsNotFound((*database)->DropTable("a")));
  EXPECT_TRUE(absl::IsNotFound((*database)->RenameTable("a", "b")));
  EXPECT_EQ(a.name(), "a");
  const Status loaded = loader.Finish();
  EXPECT_TRUE(absl::IsFailedPrecondition(loaded)) << loaded;
  const auto refused = [&](const char* what, auto body) {
    const Status status = (*database)->Run(body);
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << what << ": " << status;
    EXPECT_THAT(Message(status), HasSubstr("has been dropped")) << what;
  };
  uint64_t value = 1;
  refused("Get", [&](BlockingTransaction& t) { return t.Get(a, 1, &value); });
  refused("Insert", [&](BlockingTransaction& t) { return t.Insert(a, 1, value); });
  refused("Upsert", [&](BlockingTransaction& t) { return t.Upsert(a, 1, value); });
  refused("Update", [&](BlockingTransaction& t) { return t.Update(a, 1, value); });
  refused("Remove", [&](BlockingTransaction& t) { return t.Remove(a, 1); });
  refused("Exists", [&](BlockingTransaction& t) { return t.Exists(a, 1).status(); });
  ScanRows rows;
  refused("Scan", [&](BlockingTransaction& t) { return t.Scan(a, {.from = 0, .to = 9}, &rows); });
  refused("Search", [&](BlockingTransaction& t) { return t.Search(boxes, {0, 0, 9, 9}, &rows); });
  refused("Nearest", [&](BlockingTransaction& t) { return t.Nearest(boxes, {.x = 1, .y = 1}, &rows); });
  // None of these is a failure: a body may go on after all of them.
  const Table& b = **(*database)->CreateTable(OrderedTable("still here"));
  const Status went_on = (*database)->Run([&](BlockingTransaction& t) -> Status {
    GANNET_RETURN_IF_ERROR(t.Insert(b, 1, uint64_t{1}));
    std::string text;
    txn::GetRequest request = txn::GetRequest::Of(a, 1, &value);
    for (const Status& status :
         {t.Get(a, 1, &value), t.Get(a, 1, &text), t.GetView(a, 1).status(), t.Exists(a, 1).status(),
          t.GetMany(std::span(&request, 1)), t.GetForUpdate(a, 1, &value).status(), t.Insert(a, 1, value),
          t.Upsert(a, 1, value), t.Update(a, 1, value), t.UpdateIf(a, 1, value, value).status(), t.Remove(a, 1),
          t.Add(a, 1, value), t.Scan(a, {.from = 0, .to = 9}, &rows), t.Rows(a).First(),
          t.Search(boxes, {0, 0, 9, 9}, &rows), t.Nearest(boxes, {.x = 1, .y = 1}, &rows)}) {
      EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    }
    return t.Add(b, 1, uint64_t{1});
  });
  EXPECT_TRUE(went_on.ok()) << went_on;
  ASSERT_TRUE((*database)->Run([&](BlockingTransaction& t) { return t.Get(b, 1, &value); }).ok());
  EXPECT_EQ(value, 2u);
  EXPECT_TRUE((*database)->DropTable("still here").ok());
  // Nothing of it is left: the name is free, the number is not.
  const auto again = (*database)->CreateTable(OrderedTable("a"));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->id(), 3);
  EXPECT_TRUE(absl::IsNotFound((*database)->Run([&](BlockingTransaction& t) { return t.Get(**again, 1, &value); })));
  session->reset();
}

TEST(DropTableTest, ItWaitsForTransactions) {
  auto database = Database::OpenInMemory({.durable_within = absl::Milliseconds(50), .memory_bytes = uint64_t{1} << 28});
  ASSERT_TRUE((*database)->Start().ok());
  const Table& a = **(*database)->CreateTable(HashTable("a"));
  auto open = (*database)->Begin();
  ASSERT_TRUE(open.ok());
  ASSERT_TRUE((*open)->Insert(a, 1, uint64_t{1}).ok());
  const Status late = (*database)->DropTable("a");
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  EXPECT_THAT(Message(late), HasSubstr("table 'a' was not dropped"));
  ASSERT_TRUE(open->Commit().ok());
  uint64_t value = 0;
  EXPECT_TRUE((*database)->Run([&](BlockingTransaction& t) { return t.Get(a, 1, &value); }).ok());
  EXPECT_EQ(value, 1u);
  EXPECT_TRUE((*database)->DropTable("a").ok());
}

TEST(DropTableTest, NodesOfAClusterSayThatTheyCannot) {
  auto cluster = Open(NewDisk(), {HashTable("a")}, 2);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const Status refused = (*cluster)->database().DropTable("a");
  EXPECT_TRUE(absl::IsUnimplemented(refused)) << refused;
  ASSERT_TRUE(Put(**cluster, "a", 1, 1).ok());
}

TEST(DropTableTest, ALoadOfADroppedTableHoldsNothingUp) {
  const Disk disk = NewDisk();
  {
    auto cluster = Open(disk, {HashTable("a")});
    Database& database = (*cluster)->database();
    const auto table = database.CreateTable(OrderedTable("loaded"));
    {
      auto session = database.OpenSession();
      BulkLoader loader(session->get(), *table);
      ASSERT_TRUE(loader.Add(1, uint64_t{1}).ok());
      ASSERT_TRUE(loader.Finish().ok());
    }
    EXPECT_TRUE(absl::IsFailedPrecondition(Put(**cluster, "a", 1, 1)));
    ASSERT_TRUE(database.DropTable("loaded").ok());
    ASSERT_TRUE(Put(**cluster, "a", 1, 1).ok());
  }
  auto cluster = Open(disk->CrashedCopy(1));
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_THAT(Names((*cluster)->database()), ElementsAre("a"));
  EXPECT_EQ(Get(**cluster, "a", 1).value(), 1u);
}

// A checkpoint that is published while a table is created finds it in the manifest, and not among the tables yet.
TEST(DropTableTest, OnlyTablesThatWereDroppedLeaveTheManifest) {
  const Disk disk = NewDisk();
  auto cluster = Open(disk, {HashTable("stays"), HashTable("goes")});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  Database& database = (*cluster)->database();
  ASSERT_TRUE(database.DropTable("goes").ok());
  log::Manifest manifest;
  for (const uint16_t id : {0, 1, 2}) {
    manifest.tables.emplace_back().id = id;
    manifest.checkpoints.emplace_back().files.emplace_back().table = id;
  }
  LeaveOutDropped(*database.state().local, &manifest);
  std::vector<int> tables;
  for (const log::TableDescription& table : manifest.tables) tables.push_back(table.id);
  EXPECT_THAT(tables, ElementsAre(0, 2)) << "the last one is being created";
  EXPECT_EQ(manifest.checkpoints[0].files.size(), 1u);
  EXPECT_TRUE(manifest.checkpoints[1].files.empty());
  EXPECT_EQ(manifest.checkpoints[2].files.size(), 1u);
}

// A checkpoint is in the middle of the table, and would take minutes for it.
TEST(DropTableTest, ACheckpointInProgressLeavesItOut) {
  const Disk disk = NewDisk();
  {
    auto cluster = DurableCluster::Open(
        disk, {}, {.database = {.checkpoint_log_multiple = 0, .checkpoint_bytes_per_second = kLeastCheckpointRate}});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    Database& database = (*cluster)->database();
    TableOptions large = HashTable("large");
    large.payload_bytes = 60'000;
    const Table& table = **database.CreateTable(large);
    ASSERT_TRUE(database.CreateTable(HashTable("after it")).ok());
    const std::vector<std::byte> payload(large.payload_bytes);
    for (uint64_t key = 0; key < 1000; ++key) {
      ASSERT_TRUE(database.Run([&](BlockingTransaction& t) { return t.Insert(table, key, payload); }).ok());
    }
    ASSERT_TRUE(Put(**cluster, "after it", 1, 1).ok());
    std::thread checkpoint([&] {
      const Status taken = database.Checkpoint();
      EXPECT_TRUE(taken.ok()) << taken;
    });
    std::string begun;
    while (begun.empty()) {
      const std::vector<std::string> names = disk->List("/data").value();
      for (const std::string& name : names) {
        if (name.starts_with("checkpoint")) begun = name;
      }
      SleepForNanos(1'000'000);
    }
    const Status dropped = database.DropTable("large");
    EXPECT_TRUE(dropped.ok()) << dropped;
    checkpoint.join();
  }
  for (const Disk& each : {Disk(disk->CrashedCopy(1)), disk}) {
    auto cluster = Open(each);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    EXPECT_THAT(Names((*cluster)->database()), ElementsAre("after it"));
    EXPECT_EQ(Get(**cluster, "after it", 1).value(), 1u);
  }
}

// Threads run transactions on all tables, also on those that go, while tables come and go and checkpoints are taken.
TEST(DropTableTest, TransactionsRunMeanwhile) {
  constexpr int kThreads = 3;
  constexpr int kRounds = 120;
  const std::vector<TableOptions> kinds = AllKinds(kPayload, /*variable_length=*/true);
  const Disk disk = NewDisk();
  std::array<std::atomic<uint64_t>, kThreads> acknowledged{};
  std::atomic<uint64_t> refused{0};
  {
    auto cluster = Open(disk, {OrderedTable("stays")});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    Database& database = (*cluster)->database();
    const Table& stays = *database.FindTable("stays");
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        Random random(static_cast<uint64_t>(i) + 1);
        auto session = database.OpenSession();
        ASSERT_TRUE(session.ok());
        const std::array<std::byte, kPayload> payload{};
        std::array<std::byte, kPayload> read;
        while (!stop.load()) {
          const std::vector<const Table*> tables = database.tables();
          const Table& one = *tables[random.Below(tables.size())];
          const uint64_t mark = acknowledged[static_cast<size_t>(i)].load();
          const Status done = (*session)->RunBlocking([&](Transaction& t) -> coro::Task<Status> {
            GANNET_CO_RETURN_IF_ERROR(t.Insert(stays, mark * kThreads + static_cast<uint64_t>(i), mark));
            if (&one == &stays) co_return absl::OkStatus();
            const index::OwnedKey key = KeyOf(one.options(), random.Below(500));
            Status status = t.Insert(one, key.view(), std::span(payload).first(random.Below(kPayload)));
            if (status.ok() && random.OneIn(2)) {
              const index::OwnedKey other = KeyOf(one.options(), random.Below(500));
              if (random.OneIn(2)) {
                status = co_await t.Remove(one, other.view());
              } else {
                status = co_await t.Get(one, other.view(), std::span(read).first(0), 0);
              }
              if (absl::IsNotFound(status)) status = absl::OkStatus();
            }
            co_return status;
          });
          if (done.ok()) {
            acknowledged[static_cast<size_t>(i)].store(mark + 1);
          } else if (absl::IsFailedPrecondition(done)) {
            refused.fetch_add(1);
          } else {
            ASSERT_TRUE(absl::IsAlreadyExists(done)) << done;
          }
        }
      });
    }
    for (int round = 0; round < kRounds; ++round) {
      TableOptions options = kinds[static_cast<size_t>(round) % kinds.size()];
      const auto created = database.CreateTable(options);
      ASSERT_TRUE(created.ok()) << created.status();
      SleepForNanos(2'000'000);
      if (round % 10 == 3) {
        ASSERT_TRUE(database.Checkpoint().ok());
      }
      const Status dropped = database.DropTable(options.name);
      ASSERT_TRUE(dropped.ok()) << dropped;
    }
    stop.store(true);
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_GT(refused.load(), 0u);
  auto cluster = Open(disk->CrashedCopy(1));
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_THAT(Names((*cluster)->database()), ElementsAre("stays"));
  uint64_t rows = 0;
  for (size_t i = 0; i < kThreads; ++i) {
    for (uint64_t mark = 0; mark < acknowledged[i].load(); ++mark, ++rows) {
      ASSERT_EQ(Get(**cluster, "stays", mark * kThreads + i).value(), mark);
    }
  }
  EXPECT_EQ((*cluster)->database().table_statistics().front().index.keys, rows);
}

// The disk breaks at every operation on the manifest, by a power cut or by one error, and once again the table is used
// as if nothing had happened. Afterwards it is there with all its rows, or not at all.
TEST(DropTableTest, ACrashLeavesAllOfItOrNothing) {
  constexpr uint64_t kRows = 20;
  const Disk first = NewDisk();
  {
    auto cluster = Open(first, {HashTable("a"), OrderedTable("b")});
    for (uint64_t key = 0; key < kRows / 2; ++key) ASSERT_TRUE(Put(**cluster, "b", key, key).ok());
    ASSERT_TRUE((*cluster)->database().Checkpoint().ok());
    for (uint64_t key = kRows / 2; key < kRows; ++key) ASSERT_TRUE(Put(**cluster, "b", key, key).ok());
    ASSERT_TRUE(Put(**cluster, "a", 1, 1).ok());
    ASSERT_TRUE((*cluster)->Close().ok());
  }
  const DiskImage image = ImageOf(*first);
  std::set<bool> seen;
  for (const bool power_cut : {true, false}) {
    for (const bool checkpoint : {false, true}) {
      for (uint64_t at = 1;; ++at) {
        SCOPED_TRACE(testing::Message() << (power_cut ? "power cut" : "error") << " at operation " << at
                                        << (checkpoint ? ", then a checkpoint" : ""));
        const Disk disk = DiskOf(image, at);
        bool dropped = false;
        bool noted = true;
        std::atomic<uint64_t> operations{0};
        {
          auto cluster = DurableCluster::Open(disk, {}, {.database = {.durable_within = absl::Milliseconds(100)}});
          ASSERT_TRUE(cluster.ok()) << cluster.status();
          Database& database = (*cluster)->database();
          BreakAtManifest(disk, at, power_cut, &operations);
          dropped = database.DropTable("b").ok();
          noted = dropped;
          EXPECT_EQ(database.FindTable("b"), nullptr) << "it is not usable after an error either";
          disk->SetOptions({});
          if (checkpoint && !power_cut) {
            ASSERT_TRUE(database.Checkpoint().ok());
            noted = true;
          }
          if (!power_cut) {
            ASSERT_TRUE(Put(**cluster, "a", 2, 2).ok());
          }
        }
        if (operations.load() < at) {
          EXPECT_GT(at, 3u) << "the replacement of a file has more operations than that";
          break;
        }
        disk->Heal();
        for (uint64_t seed = 1; seed <= 3; ++seed) {
          auto cluster = Open(power_cut ? disk->CrashedCopy(at * 10 + seed) : disk);
          ASSERT_TRUE(cluster.ok()) << cluster.status();
          Database& database = (*cluster)->database();
          EXPECT_EQ(Get(**cluster, "a", 1).value(), 1u);
          const bool there = database.FindTable("b") != nullptr;
          if (noted) {
            EXPECT_FALSE(there);
          }
          for (uint64_t key = 0; there && key < kRows; ++key) EXPECT_EQ(Get(**cluster, "b", key).value(), key);
          seen.insert(there);
          if (there) {
            ASSERT_TRUE(database.DropTable("b").ok());
          }
          ASSERT_TRUE(database.CreateTable(HashTable("b")).ok());
          EXPECT_TRUE(absl::IsNotFound(Get(**cluster, "b", 1).status()));
          ASSERT_TRUE((*cluster)->Close().ok());
          if (!power_cut) break;
        }
      }
    }
  }
  EXPECT_THAT(seen, ElementsAre(false, true));
}

}  // namespace
}  // namespace gannet::txn
