// Nodes of one fabric drop tables together while transactions run: durably and atomically, and their memory is free
// again on all nodes.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/thread.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "index/key_wire.h"
#include "rdma/rpc.h"
#include "tests/txn/catalog_helpers.h"
#include "tests/txn/cluster.h"
#include "tests/txn/disk_image.h"
#include "tests/txn/durable_cluster.h"
#include "tests/txn/nodes_helpers.h"
#include "tests/txn/table_kinds.h"
#include "txn/all_nodes.h"
#include "txn/run/database_state.h"
#include "txn/durable/data_directory.h"
#include "txn/peer/wire.h"
#include "txn/run/manual_transaction.h"
#include "txn/run/session.h"
#include "txn/session/session_state.h"

namespace gannet::txn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Status Create(DurableCluster& cluster, const TableOptions& options) {
  return CreateTableOnAllNodes(NodesOf(cluster), options);
}

Status Drop(DurableCluster& cluster, std::string_view name) {
  return DropTableOnAllNodes(NodesOf(cluster), name);
}

// Rows of every node, some of them in a checkpoint of that node.
void PutRowsWithCheckpoints(DurableCluster& cluster, const std::string& table, uint64_t value) {
  PutRows(cluster, table, value - 1);
  for (Database* const node : NodesOf(cluster)) {
    const Status taken = node->Checkpoint();
    ASSERT_TRUE(taken.ok()) << taken;
  }
  for (uint64_t key = 0; key < 12; key += 2) ASSERT_TRUE(Put(cluster, table, key, value + key).ok());
}

// What PutRowsWithCheckpoints has put.
void ExpectAllRows(DurableCluster& cluster, const std::string& table, uint64_t value) {
  for (uint64_t key = 0; key < 12; ++key) {
    const StatusOr<uint64_t> got = Get(cluster, table, key, static_cast<int>((key + 1) % kNodes));
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(*got, value + key - key % 2) << table << ", key " << key;
  }
}

TEST(DropNodesTest, ATableIsDropped) {
  const Disk disk = NewDisk();
  {
    auto cluster = Open(disk, {Spread("a"), Spread("b")}, kNodes);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    PutRowsWithCheckpoints(**cluster, "a", 100);
    PutRows(**cluster, "b", 300);
    std::vector<const Table*> tables;
    for (Database* const node : NodesOf(**cluster)) tables.push_back(node->FindTable("a"));
    EXPECT_TRUE(absl::IsNotFound(Drop(**cluster, "c")));
    const Status alone = (*cluster)->database(1).DropTable("a");
    EXPECT_TRUE(absl::IsUnimplemented(alone)) << alone;
    EXPECT_THAT(Message(alone), HasSubstr("use DropTableOnAllNodes if all are in this process"));
    ExpectAllRows(**cluster, "a", 100);
    const Status dropped = Drop(**cluster, "a");
    ASSERT_TRUE(dropped.ok()) << dropped;
    EXPECT_THAT(NamesOnAll(**cluster), ElementsAre("b"));
    for (int node = 0; node < kNodes; ++node) {
      Database& database = (*cluster)->database(node);
      EXPECT_EQ(ManifestOf(*disk, node).catalog_generation, 1u);
      EXPECT_EQ(ManifestOf(*disk, node).tables.size(), 1u);
      EXPECT_TRUE(database.OpenSession().ok());
      for (uint64_t key = 0; key < 12; ++key) {
        uint64_t value = 0;
        const Table& table = *tables[static_cast<size_t>(node)];
        for (const Status& late : {database.Run([&](BlockingTransaction& t) { return t.Get(table, key, &value); }),
                                   database.Run([&](BlockingTransaction& t) { return t.Upsert(table, key, key); })}) {
          EXPECT_TRUE(absl::IsFailedPrecondition(late)) << late;
          EXPECT_THAT(Message(late), HasSubstr("table 'a' has been dropped"));
        }
      }
    }
    EXPECT_TRUE(absl::IsNotFound(Drop(**cluster, "a")));
    // The name is free again, and its number is not.
    ASSERT_TRUE(Create(**cluster, Spread("a")).ok());
    EXPECT_EQ((*cluster)->table("a", 2).id(), 2);
    EXPECT_TRUE(absl::IsNotFound(Get(**cluster, "a", 1).status()));
    PutRows(**cluster, "a", 500);
  }
  auto cluster = Open(disk->CrashedCopy(1), {}, kNodes);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_THAT(NamesOnAll(**cluster), ElementsAre("b", "a"));
  ExpectRows(**cluster, "b", 300);
  ExpectRows(**cluster, "a", 500);
  ASSERT_TRUE(Drop(**cluster, "b").ok());
  ASSERT_TRUE(Drop(**cluster, "a").ok());
  ASSERT_TRUE(Create(**cluster, Spread("a")).ok());
  EXPECT_EQ((*cluster)->table("a", 1).id(), 3);
}

TEST(DropNodesTest, OneManifestWithoutTheTableIsEnough) {
  WithManifestsBehind(
      {Spread("a"), Spread("b")},
      [](DurableCluster& cluster) {
        PutRowsWithCheckpoints(cluster, "a", 100);
        PutRows(cluster, "b", 300);
      },
      [](DurableCluster& cluster) { ASSERT_TRUE(Drop(cluster, "a").ok()); },
      [](DurableCluster& cluster, const Disk&, bool all_behind) {
        EXPECT_EQ(NamesOnAll(cluster),
                  all_behind ? std::vector<std::string>({"a", "b"}) : std::vector<std::string>({"b"}));
        if (all_behind) ExpectAllRows(cluster, "a", 100);
        ExpectRows(cluster, "b", 300);
        ASSERT_TRUE(cluster.database(1).Checkpoint().ok());
      });
}

// The manifest of one node cannot be written, or not for long: the table is there with all its rows, also those that
// come afterwards, and also after checkpoints and a crash. `works`: number of manifests of `node` that are written
// before its disk fails.
TEST(DropNodesTest, AnErrorOfOneNodesDiskChangesNothing) {
  for (int node = 0; node < kNodes; ++node) {
    for (const bool behind : {false, true}) {
      SCOPED_TRACE(testing::Message() << "node " << node << (behind ? " is not taken back" : ""));
      const Disk disk = NewDisk();
      const auto path = [](int of) { return absl::StrCat("/data/node-", of, "/MANIFEST"); };
      {
        auto cluster = Open(disk, {Spread("a"), Spread("b")}, kNodes);
        ASSERT_TRUE(cluster.ok()) << cluster.status();
        PutRowsWithCheckpoints(**cluster, "a", 100);
        const int fails = behind ? kNodes - 1 : node;
        if (behind && node == fails) break;
        disk->Schedule({.operation = log::DiskOperation::kWrite, .times = 1000, .path_contains = path(fails)});
        if (behind) {
          // The manifest lacks the table, and it cannot get it back.
          disk->Schedule(
              {.operation = log::DiskOperation::kWrite, .after = 1, .times = 1000, .path_contains = path(node)});
        }
        const Status refused = Drop(**cluster, "a");
        EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
        EXPECT_THAT(Message(refused), HasSubstr(absl::StrCat("when a table is dropped: node ", fails, ": ")));
        EXPECT_THAT(Message(refused), HasSubstr("It was done on no node"));
        EXPECT_THAT(NamesOnAll(**cluster), ElementsAre("a", "b"));
        EXPECT_EQ(ManifestOf(*disk, node).tables.size(), behind ? 1u : 2u);
        ExpectAllRows(**cluster, "a", 100);
        for (uint64_t seed = 1; seed <= 3; ++seed) {
          auto crashed = Open(disk->CrashedCopy(seed), {}, kNodes);
          ASSERT_TRUE(crashed.ok()) << crashed.status();
          ExpectAllRows(**crashed, "a", 100);
        }
        PutRows(**cluster, "a", 200);
        disk->Heal();
        ASSERT_TRUE((*cluster)->database(node).Checkpoint().ok());
        EXPECT_EQ(ManifestOf(*disk, node).tables.size(), 2u);
        ASSERT_TRUE((*cluster)->database(node).Checkpoint().ok());
        for (uint64_t seed = 1; seed <= 3; ++seed) {
          auto crashed = Open(disk->CrashedCopy(seed), {}, kNodes);
          ASSERT_TRUE(crashed.ok()) << crashed.status();
          EXPECT_THAT(NamesOnAll(**crashed), ElementsAre("a", "b"));
          ExpectRows(**crashed, "a", 200);
        }
        ASSERT_TRUE(Drop(**cluster, "a").ok());
      }
      auto cluster = Open(disk->CrashedCopy(1), {}, kNodes);
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      EXPECT_THAT(NamesOnAll(**cluster), ElementsAre("b"));
    }
  }
}

// No manifest can be written: the table is dropped in memory. The directory has all of it until one node's checkpoint,
// and nothing of it afterwards.
TEST(DropNodesTest, WhereNoDiskWorksANodesCheckpointDropsIt) {
  const Disk disk = NewDisk();
  auto cluster = Open(disk, {Spread("a"), Spread("b")}, kNodes);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  PutRowsWithCheckpoints(**cluster, "a", 100);
  disk->Schedule({.operation = log::DiskOperation::kWrite, .times = 1000, .path_contains = "MANIFEST"});
  const Status error = Drop(**cluster, "a");
  EXPECT_TRUE(absl::IsDataLoss(error)) << error;
  EXPECT_THAT(Message(error), HasSubstr("is dropped here, but"));
  EXPECT_THAT(Message(error), HasSubstr("until a node's next checkpoint"));
  EXPECT_THAT(NamesOnAll(**cluster), ElementsAre("b"));
  PutRows(**cluster, "b", 300);
  disk->Heal();
  {
    auto crashed = Open(disk->CrashedCopy(1), {}, kNodes);
    ASSERT_TRUE(crashed.ok()) << crashed.status();
    EXPECT_THAT(NamesOnAll(**crashed), ElementsAre("a", "b"));
    ExpectAllRows(**crashed, "a", 100);
  }
  ASSERT_TRUE((*cluster)->database(1).Checkpoint().ok());
  for (const bool all : {false, true}) {
    for (int node = 0; all && node < kNodes; ++node) ASSERT_TRUE((*cluster)->database(node).Checkpoint().ok());
    auto crashed = Open(disk->CrashedCopy(1), {}, kNodes);
    ASSERT_TRUE(crashed.ok()) << crashed.status();
    EXPECT_THAT(NamesOnAll(**crashed), ElementsAre("b"));
    ExpectRows(**crashed, "b", 300);
  }
}

// The power goes at every operation on a manifest, or one of them fails: the table is there with all its rows, or not
// at all.
TEST(DropNodesTest, ACrashLeavesAllOfItOrNothing) {
  const Disk first = NewDisk();
  {
    auto cluster = Open(first, {Spread("a"), Spread("b")}, kNodes);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    PutRowsWithCheckpoints(**cluster, "a", 100);
    PutRows(**cluster, "b", 300);
  }
  const DiskImage image = ImageOf(*first);
  std::set<bool> seen;
  for (const bool power_cut : {true, false}) {
    for (uint64_t at = 1;; ++at) {
      SCOPED_TRACE(testing::Message() << (power_cut ? "power cut" : "error") << " at operation " << at);
      const Disk disk = DiskOf(image, at);
      std::atomic<uint64_t> operations{0};
      bool dropped = false;
      {
        auto cluster = Open(disk, {}, kNodes);
        ASSERT_TRUE(cluster.ok()) << cluster.status();
        BreakAtManifest(disk, at, power_cut, &operations);
        dropped = Drop(**cluster, "a").ok();
        disk->SetOptions({});
        const bool there = NamesOnAll(**cluster).size() == 2;
        EXPECT_FALSE(there && dropped);
        if (!power_cut) {
          EXPECT_EQ(there, !dropped) << "one manifest can be written, so the change is made or taken back";
          if (there) ExpectAllRows(**cluster, "a", 100);
          ASSERT_TRUE((*cluster)->database(static_cast<int>(at) % kNodes).Checkpoint().ok());
        }
      }
      if (operations.load() < at) {
        EXPECT_GT(at, 9u) << "three replacements of a file have more operations than that";
        break;
      }
      disk->Heal();
      for (uint64_t seed = 1; seed <= 3; ++seed) {
        auto cluster = Open(power_cut ? disk->CrashedCopy(at * 10 + seed) : disk, {}, kNodes);
        ASSERT_TRUE(cluster.ok()) << cluster.status();
        const bool there = NamesOnAll(**cluster).size() == 2;
        EXPECT_TRUE(there ? !dropped : dropped || power_cut);
        if (there) ExpectAllRows(**cluster, "a", 100);
        ExpectRows(**cluster, "b", 300);
        seen.insert(there);
        if (there) {
          ASSERT_TRUE(Drop(**cluster, "a").ok());
        }
        ASSERT_TRUE(Create(**cluster, Spread("a")).ok());
        EXPECT_TRUE(absl::IsNotFound(Get(**cluster, "a", 1).status()));
        ASSERT_TRUE((*cluster)->Close().ok());
        if (!power_cut) break;
      }
    }
  }
  EXPECT_THAT(seen, ElementsAre(false, true));
}

uint64_t TakenBytes(const Database& database) {
  const rdma::SlabStatistics memory = database.memory_statistics();
  return memory.carved_bytes - memory.free_bytes;
}

// Each node has a session that fills the table everywhere and reads it. All memory of a dropped table is used again, on
// every node: the rounds after the first take nothing new.
TEST(DropNodesTest, ItsMemoryIsFree) {
  constexpr uint64_t kRows = 1500;
  constexpr size_t kPayload = 100;
  for (const ReadPathPolicy path : {ReadPathPolicy::kOneSided, ReadPathPolicy::kCall}) {
    Cluster cluster(ClusterOptions{.nodes = kNodes, .read_path = path}, {});
    std::vector<Database*> nodes;
    for (const auto& database : cluster.databases) nodes.push_back(database.get());
    const std::array<std::byte, kPayload> payload{};
    for (TableOptions options : AllKinds(kPayload, /*variable_length=*/true)) {
      SCOPED_TRACE(options.name);
      options.placement = Placement::ByHash();
      std::array<uint64_t, kNodes> first{};
      for (int round = 0; round < 4; ++round) {
        const Status created = CreateTableOnAllNodes(nodes, options);
        ASSERT_TRUE(created.ok()) << created;
        std::vector<std::unique_ptr<Session>> sessions;
        for (Database* const node : nodes) {
          sessions.push_back(*node->OpenSession());
          const Table& table = *node->FindTable(options.name);
          for (uint64_t n = node->node_id(); n < kRows;) {
            const uint64_t end = std::min(kRows, n + 50 * kNodes);
            const Status filled = sessions.back()->RunBlocking([&](Transaction& t) -> coro::Task<Status> {
              for (uint64_t i = n; i < end; i += kNodes) {
                const index::OwnedKey key = KeyOf(options, i);
                GANNET_CO_RETURN_IF_ERROR(t.Insert(table, key.view(), std::span(payload).first(i % kPayload)));
              }
              co_return absl::OkStatus();
            });
            ASSERT_TRUE(filled.ok()) << filled;
            while (n < end) n += kNodes;
          }
        }
        for (Database* const node : nodes) {
          const Table& table = *node->FindTable(options.name);
          const Status read = sessions[node->node_id()]->RunBlocking([&](Transaction& t) -> coro::Task<Status> {
            std::array<std::byte, kPayload> row;
            for (uint64_t i = 0; i < kRows; i += 7) {
              const index::OwnedKey key = KeyOf(options, i);
              const Status got = co_await t.Get(table, key.view(), std::span(row).first(i % kPayload), 0);
              if (!got.ok()) co_return got;
            }
            co_return absl::OkStatus();
          });
          EXPECT_TRUE(read.ok()) << read;
        }
        if (path == ReadPathPolicy::kOneSided && options.index == IndexKind::kXStore) {
          EXPECT_EQ(nodes[0]->shared_cache_bytes().size(), 1u);
        }
        const Status dropped = DropTableOnAllNodes(nodes, options.name);
        ASSERT_TRUE(dropped.ok()) << dropped;
        for (Database* const node : nodes) {
          EXPECT_TRUE(node->shared_cache_bytes().empty());
          EXPECT_EQ(node->state().client_caches.BytesOf(static_cast<TableId>(node->state().next_table - 1)), 0u);
        }
        sessions.clear();
        if (round > 0) continue;
        SleepForNanos(100'000'000);  // the first figures, too, are without such blocks
        for (int node = 0; node < kNodes; ++node) first[static_cast<size_t>(node)] = TakenBytes(*nodes[node]);
      }
      for (size_t node = 0; node < kNodes; ++node) {
        // Blocks whose grace period is not over are free a little later. Blocks that are lent to other nodes stay lent.
        const uint64_t most = first[node] + (uint64_t{128} << 10);
        const uint64_t deadline = NowNanos() + 10'000'000'000;
        while (TakenBytes(*nodes[node]) > most && NowNanos() < deadline) SleepForNanos(10'000'000);
        EXPECT_LE(TakenBytes(*nodes[node]), most) << node;
      }
    }
  }
}

// A session that has used many tables keeps no caches of those that were dropped.
TEST(DropNodesTest, ASessionForgetsDroppedTables) {
  Cluster cluster(ClusterOptions{.nodes = 2}, {});
  const std::vector<Database*> nodes = {cluster.databases[0].get(), cluster.databases[1].get()};
  Session& session = cluster.NewSession(0);
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(CreateTableOnAllNodes(nodes, Spread("a")).ok());
    for (uint64_t key = 0; key < 10; ++key) {
      const Status put = session.RunBlocking(
          [&](Transaction& t) -> coro::Task<Status> { co_return t.Insert(*nodes[0]->FindTable("a"), key, key); });
      ASSERT_TRUE(put.ok()) << put;
    }
    const Status read = session.RunBlocking([&](Transaction& t) -> coro::Task<Status> {
      for (uint64_t key = 0; key < 10; ++key) {
        uint64_t value = 0;
        const Status got = co_await t.Get(*nodes[0]->FindTable("a"), key, &value);
        if (!got.ok()) co_return got;
      }
      co_return absl::OkStatus();
    });
    ASSERT_TRUE(read.ok()) << read;
    EXPECT_EQ(std::ranges::count_if(session.state().remote_indexes, [](const auto& one) { return one != nullptr; }), 1);
    ASSERT_TRUE(DropTableOnAllNodes(nodes, "a").ok());
  }
}

TEST(DropNodesTest, ItWaitsForTransactionsOfEveryNode) {
  auto cluster = DurableCluster::Open(NewDisk(), {Spread("a"), Spread("b")},
                                      {.nodes = kNodes, .database = {.durable_within = absl::Milliseconds(500)}});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  PutRows(**cluster, "a", 100);
  for (int node = 0; node < kNodes; ++node) {
    auto open = (*cluster)->database(node).Begin();
    ASSERT_TRUE(open.ok()) << open.status();
    for (uint64_t key = 0; key < 12; ++key) {
      ASSERT_TRUE((*open)->Update((*cluster)->table("a", node), key, 200 + key).ok());
    }
    const Status late = Drop(**cluster, "a");
    EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
    EXPECT_THAT(Message(late), HasSubstr("table 'a' was not dropped"));
    const Status committed = open->Commit();
    EXPECT_TRUE(committed.ok()) << committed;
    ExpectRows(**cluster, "a", 200);
  }
  EXPECT_TRUE(Patiently([&] { return Drop(**cluster, "a"); }).ok());
  EXPECT_THAT(NamesOnAll(**cluster), ElementsAre("b"));
}

// While it waits, every node's accesses to rows of every node are refused.
TEST(DropNodesTest, NoNodeUsesItMeanwhile) {
  ExpectNobodyUsesItDuring([](const std::vector<Database*>& nodes) { return DropTableOnAllNodes(nodes, "a"); },
                           Table::Life::kBeingDropped, absl::StatusCode::kFailedPrecondition, "is being dropped");
}

// A node dies while the drop waits: the others keep the table.
TEST(DropNodesTest, ANodeDiesMeanwhile) {
  Cluster cluster(ClusterOptions{.nodes = kNodes}, {HashTable("a")});
  std::vector<Database*> nodes;
  for (const auto& database : cluster.databases) nodes.push_back(database.get());
  const Table& table = cluster.table(1, "a");
  auto open = nodes[1]->Begin();
  ASSERT_TRUE(open.ok()) << open.status();
  ASSERT_TRUE((*open)->Insert(table, 1, uint64_t{1}).ok());
  std::thread drop([&] {
    const Status dropped = DropTableOnAllNodes(nodes, "a");
    EXPECT_TRUE(absl::IsUnavailable(dropped)) << dropped;
  });
  while (table.life() != Table::Life::kBeingDropped) SleepForNanos(1'000'000);
  cluster.Kill(2);
  EXPECT_TRUE(open->Commit().ok());
  drop.join();
  EXPECT_TRUE(absl::IsUnavailable(DropTableOnAllNodes(nodes, "a")));
  uint64_t value = 0;
  const Status read = nodes[1]->Run([&](BlockingTransaction& t) { return t.Get(table, 1, &value); });
  EXPECT_TRUE(read.ok()) << read;
  EXPECT_EQ(value, 1u);
}

TEST(DropNodesTest, SecondaryIndexes) {
  auto fabric = rdma::ShmFabric::InProcess({.num_nodes = kNodes, .bytes_per_node = uint64_t{1} << 28});
  std::vector<std::unique_ptr<Database>> databases;
  std::vector<Database*> nodes;
  for (int node = 0; node < kNodes; ++node) {
    databases.push_back(*Database::Open(fabric->get(), static_cast<rdma::NodeId>(node), {}));
    nodes.push_back(databases.back().get());
    ASSERT_TRUE(nodes.back()->CreateTable(Spread("rows")).ok());
    const auto index = nodes.back()->CreateIndex({.name = "by value",
                                                  .table = "rows",
                                                  .fields = {{.source = IndexField::Source::kPayload, .bytes = 8}},
                                                  .placement = Placement::ByHash()});
    ASSERT_TRUE(index.ok()) << index.status();
  }
  ASSERT_TRUE(OnAllNodes(nodes, [](Database& node) { return node.Start(); }).ok());
  const auto put = [&](uint64_t key) {
    Database& node = *nodes[key % kNodes];
    return node.Run([&](BlockingTransaction& t) { return t.Upsert(*node.FindTable("rows"), key, key); });
  };
  for (uint64_t key = 0; key < 20; ++key) ASSERT_TRUE(put(key).ok());
  const Status first = DropTableOnAllNodes(nodes, "rows");
  EXPECT_TRUE(absl::IsFailedPrecondition(first)) << first;
  EXPECT_THAT(Message(first), HasSubstr("has the secondary index 'by value': drop that first"));
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (uint64_t key = 0; !stop.load(); ++key) {
      const Status done = put(key % 40);
      ASSERT_TRUE(done.ok()) << done;
    }
  });
  const Status dropped = DropTableOnAllNodes(nodes, "by value");
  EXPECT_TRUE(dropped.ok()) << dropped;
  stop.store(true);
  writer.join();
  for (Database* const node : nodes) {
    EXPECT_EQ(node->FindIndex("by value"), nullptr);
    EXPECT_EQ(node->FindTable("rows")->secondary_indexes(), nullptr);
  }
  for (uint64_t key = 0; key < 20; ++key) ASSERT_TRUE(put(key).ok());
  ASSERT_TRUE(DropTableOnAllNodes(nodes, "rows").ok());
  for (Database* const node : nodes) EXPECT_THAT(Names(*node), ElementsAre());
}

// Each node has a thread that runs transactions of several nodes on all tables, also on those that go, while tables
// come and go, checkpoints are taken, and copies are made.
TEST(DropNodesTest, TransactionsRunMeanwhile) {
  constexpr int kRounds = 45;
  constexpr size_t kPayload = 100;
  std::vector<TableOptions> kinds = AllKinds(kPayload, /*variable_length=*/true);
  for (TableOptions& options : kinds) options.placement = Placement::ByHash();
  for (const ReadPathPolicy path : {ReadPathPolicy::kOneSided, ReadPathPolicy::kCall, ReadPathPolicy::kAdaptive}) {
    const Disk disk = NewDisk();
    std::array<std::atomic<uint64_t>, kNodes> acknowledged{};
    std::atomic<uint64_t> refused{0};
    {
      auto cluster = DurableCluster::Open(disk, {OrderedTable("stays", Placement::ByHash())},
                                          {.nodes = kNodes, .database = {.read_path = path}});
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      std::atomic<bool> stop{false};
      std::vector<std::jthread> threads;
      const absl::Cleanup end = [&] { stop.store(true); };
      for (int i = 0; i < kNodes; ++i) {
        threads.emplace_back([&, i] {
          Random random(static_cast<uint64_t>(i) + 1);
          Database& database = (*cluster)->database(i);
          const Table& stays = *database.FindTable("stays");
          auto session = database.OpenSession();
          ASSERT_TRUE(session.ok()) << session.status();
          const std::array<std::byte, kPayload> payload{};
          std::array<std::byte, kPayload> read;
          while (!stop.load()) {
            const std::vector<const Table*> tables = database.tables();
            const Table& one = *tables[random.Below(tables.size())];
            const uint64_t mark = acknowledged[static_cast<size_t>(i)].load();
            const Status done = (*session)->RunBlocking([&](Transaction& t) -> coro::Task<Status> {
              GANNET_CO_RETURN_IF_ERROR(t.Insert(stays, mark * kNodes + static_cast<uint64_t>(i), mark));
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
                if (absl::IsNotFound(status) || absl::IsInvalidArgument(status)) status = absl::OkStatus();
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
        const TableOptions& options = kinds[static_cast<size_t>(round) % kinds.size()];
        const Status created = Create(**cluster, options);
        ASSERT_TRUE(created.ok()) << created;
        SleepForNanos(5'000'000);
        std::jthread other;
        if (round % 10 == 3) {
          other = std::jthread([&, round] {
            const Status taken = (*cluster)->database(round % kNodes).Checkpoint();
            EXPECT_TRUE(taken.ok()) << taken;
          });
        } else if (round % 10 == 7) {
          other = std::jthread([&, round] {
            const Status copied = (*cluster)->database(round % kNodes).Backup(absl::StrCat("/copy-", round));
            EXPECT_TRUE(copied.ok()) << copied;
          });
        }
        const Status dropped = Drop(**cluster, options.name);
        ASSERT_TRUE(dropped.ok()) << dropped;
      }
    }
    EXPECT_GT(refused.load(), 0u);
    auto cluster = Open(disk->CrashedCopy(1), {}, kNodes);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    EXPECT_THAT(NamesOnAll(**cluster), ElementsAre("stays"));
    uint64_t rows = 0;
    for (size_t i = 0; i < kNodes; ++i) {
      for (uint64_t mark = 0; mark < acknowledged[i].load(); ++mark, ++rows) {
        ASSERT_EQ(Get(**cluster, "stays", mark * kNodes + i).value(), mark);
      }
    }
    uint64_t keys = 0;
    for (Database* node : NodesOf(**cluster)) keys += node->table_statistics().front().index.keys;
    EXPECT_EQ(keys, rows);
  }
}

// Calls for a table may be served when it is being dropped, or was: those of a transaction that did not wait for the
// answer. Each thread calls a node all the time, outside of any transaction.
TEST(DropNodesTest, CallsThatComeLate) {
  constexpr uint64_t kRows = 300;
  Cluster cluster(ClusterOptions{.nodes = kNodes}, {});
  std::vector<Database*> nodes;
  for (const auto& database : cluster.databases) nodes.push_back(database.get());
  std::atomic<bool> stop{false};
  std::atomic<uint32_t> newest{0};
  std::array<std::atomic<uint64_t>, 2> answers{};  // refused, served
  std::vector<std::jthread> threads;
  const absl::Cleanup end = [&] { stop.store(true); };
  for (int i = 1; i < kNodes; ++i) {
    threads.emplace_back([&, i] {
      auto session = nodes[0]->OpenSession();
      ASSERT_TRUE(session.ok());
      std::vector<std::byte> request(256);
      std::vector<std::byte> answer(rdma::kMaxMessageBytes);
      const auto call = [&](rdma::MethodId method, size_t bytes) -> coro::Task<Status> {
        const StatusOr<size_t> got = co_await (*session)->channel().Call(
            static_cast<rdma::NodeId>(i), method, std::span(request).first(bytes), answer, absl::Seconds(5));
        co_return got.status();
      };
      for (uint64_t n = 0; !stop.load(); ++n) {
        const auto table = static_cast<TableId>(newest.load());
        rdma::WireWriter writer(request);
        rdma::MethodId method = kTxnRead;
        if (n % 2 == 0) {
          writer.PutU16(table);
          index::PutKey(writer, index::Key(n % kRows));
        } else {
          method = kTxnScan;
          ScanRequest scan;
          scan.table = table;
          scan.range.from = index::Key(0);
          scan.range.to = index::Key(kRows);
          scan.range.limit = 100;
          Put(writer, scan);
        }
        const Status status = (*session)->worker().BlockOn(call(method, *writer.Finish()));
        const bool refused = absl::IsInvalidArgument(status);
        EXPECT_TRUE(refused || status.ok() || absl::IsAborted(status)) << status;
        answers[refused ? 0 : 1].fetch_add(1);
      }
    });
  }
  for (int round = 0; round < 40; ++round) {
    ASSERT_TRUE(CreateTableOnAllNodes(nodes, OrderedTable("a", Placement::ByHash())).ok());
    newest.store(nodes[0]->FindTable("a")->id());
    const Status filled = nodes[1]->Run([&](BlockingTransaction& t) {
      for (uint64_t key = 0; key < kRows; ++key) {
        GANNET_RETURN_IF_ERROR(t.Insert(*nodes[1]->FindTable("a"), key, key));
      }
      return absl::OkStatus();
    });
    ASSERT_TRUE(filled.ok()) << filled;
    SleepForNanos(1'000'000);
    ASSERT_TRUE(DropTableOnAllNodes(nodes, "a").ok());
  }
  EXPECT_GT(answers[0].load(), 0u);
  EXPECT_GT(answers[1].load(), 0u);
}

// One node closes while another drops tables: the change is refused, or made everywhere, and nobody waits for long.
TEST(DropNodesTest, ChangesWhileTheNodesClose) {
  for (int round = 0; round < 10; ++round) {
    const Disk disk = NewDisk();
    std::vector<std::string> left;
    {
      auto cluster = Open(disk, {}, kNodes);
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      for (int i = 0; i < 20; ++i) {
        left.push_back(absl::StrCat("table ", i));
        ASSERT_TRUE(Create(**cluster, Spread(left.back())).ok());
      }
      std::thread changes([&] {
        while (!left.empty()) {
          const Status dropped = Drop(**cluster, left.front());
          if (!dropped.ok()) {
            EXPECT_TRUE(absl::IsFailedPrecondition(dropped)) << dropped;
            break;
          }
          left.erase(left.begin());
        }
      });
      SleepForNanos(static_cast<uint64_t>(round) * 7'000'000);
      const Status closed = (*cluster)->Close();
      EXPECT_TRUE(closed.ok()) << closed;
      changes.join();
    }
    auto cluster = Open(disk, {}, kNodes);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    EXPECT_EQ(NamesOnAll(**cluster), left);
  }
}

}  // namespace
}  // namespace gannet::txn
