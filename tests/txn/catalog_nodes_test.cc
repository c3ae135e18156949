// Nodes of one fabric change their tables together while transactions run, durably and atomically.
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/thread.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "log/manifest/manifest.h"
#include "tests/txn/catalog_helpers.h"
#include "tests/txn/disk_image.h"
#include "tests/txn/durable_cluster.h"
#include "tests/txn/nodes_helpers.h"
#include "tests/txn/table_kinds.h"
#include "txn/all_nodes.h"
#include "txn/durable/data_directory.h"
#include "txn/run/database_state.h"
#include "txn/run/session.h"

namespace gannet::txn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Status Rename(DurableCluster& cluster, std::string_view from, const std::string& to) {
  return RenameTableOnAllNodes(NodesOf(cluster), from, to);
}

Status Create(DurableCluster& cluster, const TableOptions& options) {
  return CreateTableOnAllNodes(NodesOf(cluster), options);
}

TEST(CatalogNodesTest, ATableIsRenamed) {
  const Disk disk = NewDisk();
  {
    auto cluster = Open(disk, {Spread("a"), Spread("b")}, kNodes);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    PutRows(**cluster, "a", 100);
    const Table* const table = (*cluster)->database(1).FindTable("a");
    EXPECT_TRUE(absl::IsNotFound(Rename(**cluster, "c", "d")));
    EXPECT_TRUE(absl::IsAlreadyExists(Rename(**cluster, "a", "b")));
    EXPECT_TRUE(absl::IsInvalidArgument(Rename(**cluster, "a", "")));
    EXPECT_EQ(ManifestOf(*disk, 0).catalog_generation, 0u) << "a program of before may still open it";
    const Status renamed = Rename(**cluster, "a", "z");
    ASSERT_TRUE(renamed.ok()) << renamed;
    EXPECT_THAT(NamesOnAll(**cluster), ElementsAre("z", "b"));
    EXPECT_EQ((*cluster)->database(1).FindTable("z"), table);
    ExpectRows(**cluster, "z", 100);
    for (int node = 0; node < kNodes; ++node) {
      EXPECT_EQ(ManifestOf(*disk, node).catalog_generation, 1u);
      EXPECT_EQ(ManifestOf(*disk, node).tables[0].name, "z");
      EXPECT_TRUE((*cluster)->database(node).OpenSession().ok());
    }
    PutRows(**cluster, "z", 200);
    ASSERT_TRUE(Rename(**cluster, "b", "a").ok());
  }
  auto cluster = Open(disk, {Spread("z"), Spread("new")}, kNodes);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_THAT(NamesOnAll(**cluster), ElementsAre("z", "a", "new"));
  ExpectRows(**cluster, "z", 200);
}

// The node that starts first compares its tables with those of the other one later: when it opens a session, or before
// the first change. While a change publishes its tables, node by node, sessions are opened.
TEST(CatalogNodesTest, FirstSessionsAreOpenedWhileTablesChange) {
  for (int round = 0; round < 30; ++round) {
    auto fabric = rdma::ShmFabric::InProcess({.num_nodes = 2, .bytes_per_node = uint64_t{1} << 24});
    std::vector<std::unique_ptr<Database>> databases;
    std::vector<Database*> nodes;
    for (rdma::NodeId node = 0; node < 2; ++node) {
      auto database = Database::Open(fabric->get(), node, {});
      ASSERT_TRUE(database.ok()) << database.status();
      ASSERT_TRUE((*database)->CreateTable(Spread("a")).ok());
      nodes.push_back(database->get());
      databases.push_back(*std::move(database));
    }
    const Status started = OnAllNodes(nodes, [](Database& node) { return node.Start(); });
    ASSERT_TRUE(started.ok()) << started;
    const Status created = CreateTableOnAllNodes(nodes, Spread("b"));
    ASSERT_TRUE(created.ok()) << created;
    const TableSet none;
    for (size_t other = 0; other < 2; ++other) {
      TableDigests& digests = *nodes[other]->state().table_digests;
      digests.PublishAgain(none);
      const auto session = nodes[1 - other]->OpenSession();
      EXPECT_TRUE(session.ok()) << session.status();
      digests.PublishAgain(nodes[other]->state().tables);
    }
  }
}

TEST(CatalogNodesTest, WithoutADirectory) {
  auto fabric = rdma::ShmFabric::InProcess({.num_nodes = 2, .bytes_per_node = uint64_t{1} << 28});
  auto first = Database::Open(fabric->get(), 0, {});
  auto second = Database::Open(fabric->get(), 1, {});
  std::vector<Database*> nodes = {second->get(), first->get()};
  for (Database* node : nodes) ASSERT_TRUE(node->CreateTable(Spread("a")).ok());
  const Status early = RenameTableOnAllNodes(nodes, "a", "b");
  EXPECT_TRUE(absl::IsFailedPrecondition(early)) << early;
  ASSERT_TRUE(OnAllNodes(nodes, [](Database& node) { return node.Start(); }).ok());
  ASSERT_TRUE(RenameTableOnAllNodes(nodes, "a", "b").ok());
  for (Database* node : nodes) EXPECT_THAT(Names(*node), ElementsAre("b"));
  using List = std::vector<Database*>;
  for (const List& wrong : {List{}, List{nodes[0]}, List{nodes[1]}, List{nodes[0], nodes[0]}, List{nodes[1], nullptr},
                            List{nodes[0], nodes[1], nodes[1]}}) {
    const Status refused = RenameTableOnAllNodes(wrong, "b", "c");
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(Message(refused), HasSubstr("the tables of all nodes are changed together: "));
  }
  auto other_fabric = rdma::ShmFabric::InProcess({.num_nodes = 2, .bytes_per_node = uint64_t{1} << 28});
  auto other = Database::Open(other_fabric->get(), 1, {});
  EXPECT_THAT(Message(RenameTableOnAllNodes(List{nodes[1], other->get()}, "b", "c")), HasSubstr("several fabrics"));
  ASSERT_TRUE((*second)->Close().ok());
  const Status closed = RenameTableOnAllNodes(nodes, "b", "c");
  EXPECT_TRUE(absl::IsFailedPrecondition(closed)) << closed;
  second->reset();
  nodes = {first->get()};
  EXPECT_TRUE(absl::IsInvalidArgument(RenameTableOnAllNodes(nodes, "b", "c")));
  EXPECT_THAT(Names(**first), ElementsAre("b"));
}

// A client that comes back after a change is compared with the tables of now.
TEST(CatalogNodesTest, ClientNodesChangeThem) {
  NodesWithClient nodes;
  for (Database* const node : nodes.all()) ASSERT_TRUE(node->CreateTable(Spread("a")).ok());
  ASSERT_TRUE(nodes.Start().ok());
  ASSERT_TRUE(CreateTableOnAllNodes(nodes.all(), Spread("b")).ok());
  ASSERT_TRUE(RenameTableOnAllNodes(nodes.all(), "a", "z").ok());
  const auto put = [](Database& database, const char* table, uint64_t key) {
    return database.Run([&](BlockingTransaction& t) { return t.Insert(*database.FindTable(table), key, key); });
  };
  for (uint64_t key = 0; key < 10; ++key) {
    const Status done = put(nodes.client(), "b", key);
    EXPECT_TRUE(done.ok()) << done;
  }
  for (const bool knows : {false, true}) {
    Database& client = nodes.Reopen();
    ASSERT_TRUE(client.CreateTable(Spread(knows ? "z" : "a")).ok());
    ASSERT_TRUE(client.CreateTable(Spread("b")).ok());
    const Status started = client.Start();
    EXPECT_EQ(started.ok(), knows) << started;
    if (knows) {
      EXPECT_TRUE(absl::IsAlreadyExists(put(client, "b", 5)));
    }
  }
}

TEST(CatalogNodesTest, OneManifestWithTheNewNameIsEnough) {
  WithManifestsBehind(
      {Spread("a"), Spread("b")},
      [](DurableCluster& cluster) {
        PutRows(cluster, "a", 100);
        ASSERT_TRUE(cluster.database(1).Checkpoint().ok());
        PutRows(cluster, "b", 300);
      },
      [](DurableCluster& cluster) {
        // "a" and "b" change places: the union of such manifests is no catalog.
        ASSERT_TRUE(Rename(cluster, "a", "c").ok());
        ASSERT_TRUE(Rename(cluster, "b", "a").ok());
        ASSERT_TRUE(Rename(cluster, "c", "b").ok());
      },
      [](DurableCluster& cluster, const Disk&, bool all_behind) {
        EXPECT_THAT(NamesOnAll(cluster), all_behind ? ElementsAre("a", "b") : ElementsAre("b", "a"));
        ExpectRows(cluster, all_behind ? "a" : "b", 100);
        ExpectRows(cluster, all_behind ? "b" : "a", 300);
      });
}

// Sessions that were open before use the new tables, from every node, with all kinds of index and both ways to read.
TEST(CatalogNodesTest, OpenSessionsUseANewTable) {
  constexpr size_t kPayload = 40;
  for (const ReadPathPolicy path : {ReadPathPolicy::kAdaptive, ReadPathPolicy::kCall, ReadPathPolicy::kOneSided}) {
    const Disk disk = NewDisk();
    std::vector<TableOptions> kinds = AllKinds(kPayload, /*variable_length=*/true);
    for (TableOptions& options : kinds) options.placement = Placement::ByHash();
    const std::array<std::byte, kPayload> payload{};
    {
      auto cluster = DurableCluster::Open(disk, {}, {.nodes = kNodes, .database = {.read_path = path}});
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      std::vector<std::unique_ptr<Session>> sessions;
      for (Database* node : NodesOf(**cluster)) sessions.push_back(*node->OpenSession());
      for (const TableOptions& options : kinds) {
        SCOPED_TRACE(options.name);
        const Status created = Create(**cluster, options);
        ASSERT_TRUE(created.ok()) << created;
        EXPECT_TRUE(absl::IsAlreadyExists(Create(**cluster, options)));
        for (uint64_t n = 0; n < 60; ++n) {
          const auto at = static_cast<int>(n % kNodes);
          const Table& table = (*cluster)->table(options.name, at);
          const Status put = sessions[static_cast<size_t>(at)]->RunBlocking([&](Transaction& t) -> coro::Task<Status> {
            const index::OwnedKey key = KeyOf(options, n);
            co_return t.Insert(table, key.view(), std::span(payload).first(n % kPayload));
          });
          ASSERT_TRUE(put.ok()) << put;
        }
        for (int at = 0; at < kNodes; ++at) {
          const Table& table = (*cluster)->table(options.name, at);
          const Status read = sessions[static_cast<size_t>(at)]->RunBlocking([&](Transaction& t) -> coro::Task<Status> {
            for (uint64_t n = 0; n < 60; ++n) {
              const index::OwnedKey key = KeyOf(options, n);
              std::array<std::byte, kPayload> row;
              const Status got = co_await t.Get(table, key.view(), std::span(row).first(n % kPayload), 0);
              if (!got.ok()) co_return got;
            }
            co_return absl::OkStatus();
          });
          EXPECT_TRUE(read.ok()) << read;
        }
      }
      sessions.clear();
    }
    auto cluster = Open(disk, kinds, kNodes);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    std::map<std::string, uint64_t> rows;
    for (Database* node : NodesOf(**cluster)) {
      for (const TableStatistics& statistics : node->table_statistics())
        rows[statistics.table] += statistics.index.keys;
    }
    for (const TableOptions& options : kinds) EXPECT_EQ(rows[options.name], 60u) << options.name;
  }
}

// A program that does not know the new table opens the directory, keeps the table, and may create it later.
TEST(CatalogNodesTest, AProgramThatLacksTheNewTableOpens) {
  const Disk disk = NewDisk();
  {
    auto cluster = Open(disk, {Spread("a")}, kNodes);
    ASSERT_TRUE(Create(**cluster, Spread("b")).ok());
    PutRows(**cluster, "b", 100);
  }
  auto cluster = Open(disk, {Spread("a")}, kNodes);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_THAT(NamesOnAll(**cluster), ElementsAre("a", "b"));
  const uint64_t generation = ManifestOf(*disk, 0).catalog_generation;
  const Status other = Create(**cluster, OrderedTable("b", Placement::ByHash()));
  EXPECT_TRUE(absl::IsInvalidArgument(other)) << other;
  const Status known = Create(**cluster, Spread("b"));
  EXPECT_TRUE(known.ok()) << known;
  EXPECT_TRUE(absl::IsAlreadyExists(Create(**cluster, Spread("b"))));
  EXPECT_EQ(ManifestOf(*disk, 0).catalog_generation, generation) << "nothing has changed";
  ExpectRows(**cluster, "b", 100);
}

TEST(CatalogNodesTest, AWrongTableIsRefused) {
  auto cluster = Open(NewDisk(), {}, kNodes);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  TableOptions wrong = Spread("a");
  wrong.payload_bytes = kMaxPayloadBytes + 1;
  EXPECT_TRUE(absl::IsInvalidArgument(Create(**cluster, wrong)));
  wrong = Spread("a");
  wrong.placement = Placement::Unknown();
  EXPECT_TRUE(absl::IsInvalidArgument(Create(**cluster, wrong)));
  wrong = Spread("a");
  wrong.expected_rows = uint64_t{1} << 30;
  const Status too_large = Create(**cluster, wrong);
  EXPECT_TRUE(absl::IsResourceExhausted(too_large)) << too_large;
  EXPECT_THAT(Message(too_large), HasSubstr("node 0: "));
  EXPECT_THAT(NamesOnAll(**cluster), ElementsAre());
  ASSERT_TRUE(Create(**cluster, Spread("a")).ok());
  PutRows(**cluster, "a", 100);
  ExpectRows(**cluster, "a", 100);
}

TEST(CatalogNodesTest, OneManifestWithTheNewTableIsEnough) {
  WithManifestsBehind(
      {Spread("a")}, [](DurableCluster& cluster) { PutRows(cluster, "a", 100); },
      [](DurableCluster& cluster) { ASSERT_TRUE(Create(cluster, Spread("b")).ok()); },
      [](DurableCluster& cluster, const Disk&, bool all_behind) {
        if (all_behind) {
          EXPECT_THAT(NamesOnAll(cluster), ElementsAre("a"));
        } else {
          EXPECT_THAT(NamesOnAll(cluster), ElementsAre("a", "b"));
          PutRows(cluster, "b", 300);
          ExpectRows(cluster, "b", 300);
        }
        ExpectRows(cluster, "a", 100);
      });
}

// A start adds tables to manifests of which some are behind, and is interrupted, too.
TEST(CatalogNodesTest, AStartAfterACrashAddsTables) {
  const Disk disk = NewDisk();
  DiskImage before;
  {
    auto cluster = Open(disk, {Spread("a")}, kNodes);
    PutRows(**cluster, "a", 100);
    before = ImageOf(*disk);
    ASSERT_TRUE(Rename(**cluster, "a", "z").ok());
  }
  DiskImage image = ImageOf(*disk);
  image["/data/node-0/MANIFEST"] = before.at("/data/node-0/MANIFEST");
  std::set<size_t> seen;
  for (uint64_t at = 1;; ++at) {
    SCOPED_TRACE(testing::Message() << "power cut at operation " << at);
    const Disk broken = DiskOf(image, at);
    std::atomic<uint64_t> operations{0};
    BreakAtManifest(broken, at, /*power_cut=*/true, &operations);
    const bool opened = Open(broken, {Spread("new")}, kNodes).ok();
    broken->SetOptions({});
    if (operations.load() < at) break;
    broken->Heal();
    auto cluster = Open(broken->CrashedCopy(at), {}, kNodes);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    const std::vector<std::string> names = NamesOnAll(**cluster);
    EXPECT_EQ(names[0], "z");
    EXPECT_TRUE(names.size() == 2 || !opened);
    ExpectRows(**cluster, "z", 100);
    seen.insert(names.size());
  }
  EXPECT_THAT(seen, ElementsAre(1, 2));
}

// Each node has a thread that inserts into the tables that it finds, in transactions of several nodes.
TEST(CatalogNodesTest, TransactionsRunMeanwhile) {
  constexpr int kTables = 60;
  const Disk disk = NewDisk();
  std::vector<std::vector<std::vector<uint64_t>>> inserted(kNodes);  // by node and table
  {
    auto cluster = Open(disk, {Spread("table 0")}, kNodes);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int node = 0; node < kNodes; ++node) {
      inserted[static_cast<size_t>(node)].resize(kTables);
      threads.emplace_back([&, node] {
        Random random(static_cast<uint64_t>(node) + 1);
        Database& database = (*cluster)->database(node);
        auto session = database.OpenSession();
        ASSERT_TRUE(session.ok());
        for (uint64_t n = 0; !stop.load(); ++n) {
          const std::vector<const Table*> tables = database.tables();
          const Table& one = *tables[random.Below(tables.size())];
          const Table& newest = *tables.back();
          const uint64_t key = n * kNodes + static_cast<uint64_t>(node);
          const Status done = (*session)->RunBlocking([&](Transaction& t) -> coro::Task<Status> {
            GANNET_CO_RETURN_IF_ERROR(t.Insert(one, key, key));
            co_return &one == &newest ? absl::OkStatus() : t.Insert(newest, key, key);
          });
          ASSERT_TRUE(done.ok()) << done << " " << one.name();
          inserted[static_cast<size_t>(node)][one.id()].push_back(key);
          if (&one != &newest) inserted[static_cast<size_t>(node)][newest.id()].push_back(key);
        }
      });
    }
    for (int i = 1; i < kTables; ++i) {
      const std::string name = absl::StrCat("new ", i);
      TableOptions table = i % 2 == 0 ? Spread(name) : OrderedTable(name, Placement::ByHash());
      table.expected_rows = 10;
      const Status created = Create(**cluster, table);
      ASSERT_TRUE(created.ok()) << created;
      ASSERT_TRUE(Rename(**cluster, name, absl::StrCat("table ", i)).ok());
      if (i % 20 == 0) {
        ASSERT_TRUE((*cluster)->database(i / 20 % kNodes).Checkpoint().ok());
        std::thread backup([&, i] {
          const Status copied = (*cluster)->database(0).Backup(absl::StrCat("/copy-", i));
          EXPECT_TRUE(copied.ok()) << copied;
        });
        EXPECT_TRUE(Rename(**cluster, "table 0", "table 0 in a backup").ok());
        EXPECT_TRUE(Rename(**cluster, "table 0 in a backup", "table 0").ok());
        backup.join();
        const auto copy = ReadDataDirectory(*disk, absl::StrCat("/copy-", i));
        ASSERT_TRUE(copy.ok()) << copy.status();
        for (const NodeData& data : *copy) {
          EXPECT_EQ(data.manifest.tables.size(), static_cast<size_t>(i) + 1);
          EXPECT_EQ(data.manifest.tables, copy->front().manifest.tables);
        }
      }
    }
    stop.store(true);
    for (std::thread& thread : threads) thread.join();
  }
  auto cluster = Open(disk->CrashedCopy(1), {}, kNodes);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(NamesOnAll(**cluster).size(), static_cast<size_t>(kTables));
  std::vector<size_t> expected(kTables, 0);
  for (const auto& by_table : inserted) {
    for (size_t id = 0; id < kTables; ++id) {
      expected[id] += by_table[id].size();
      const std::string name = absl::StrCat("table ", id);
      for (const uint64_t key : by_table[id]) ASSERT_EQ(Get(**cluster, name, key).value(), key) << name;
    }
  }
  std::map<std::string, uint64_t> rows;
  for (Database* node : NodesOf(**cluster)) {
    for (const TableStatistics& statistics : node->table_statistics()) rows[statistics.table] += statistics.index.keys;
  }
  for (size_t id = 0; id < kTables; ++id) EXPECT_EQ(rows[absl::StrCat("table ", id)], expected[id]) << id;
}

// One node closes while another changes tables: the change is refused, or made everywhere, and nobody waits for long.
TEST(CatalogNodesTest, ChangesWhileTheNodesClose) {
  for (int round = 0; round < 10; ++round) {
    const Disk disk = NewDisk();
    std::vector<std::string> made = {"a"};
    {
      auto cluster = Open(disk, {Spread("a")}, kNodes);
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      std::thread changes([&] {
        for (int i = 0;; ++i) {
          const std::string name = absl::StrCat("new ", i);
          const Status created = Create(**cluster, Spread(name));
          if (!created.ok()) {
            EXPECT_TRUE(absl::IsFailedPrecondition(created)) << created;
            break;
          }
          made.push_back(name);
        }
      });
      SleepForNanos(static_cast<uint64_t>(round) * 1'000'000);
      const Status closed = (*cluster)->Close();
      EXPECT_TRUE(closed.ok()) << closed;
      changes.join();
    }
    auto cluster = Open(disk, {}, kNodes);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    EXPECT_EQ(NamesOnAll(**cluster), made);
  }
}

// Opening what was there needs no space, so a manifest may stay behind for long.
TEST(CatalogNodesTest, AFullDiskKeepsAManifestBehind) {
  const Disk disk = NewDisk();
  DiskImage before;
  {
    auto cluster = Open(disk, {Spread("a")}, kNodes);
    PutRows(**cluster, "a", 100);
    before = ImageOf(*disk);
    ASSERT_TRUE(Rename(**cluster, "a", "z").ok());
  }
  DiskImage image = ImageOf(*disk);
  for (const int node : {0, 2}) {
    const std::string path = NodeDirectory("/data", node, kNodes) + "/MANIFEST";
    image[path] = before.at(path);
  }
  const Disk crashed = DiskOf(image);
  {
    crashed->SetCapacity(1);
    auto cluster = Open(crashed, {}, kNodes);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    EXPECT_THAT(NamesOnAll(**cluster), ElementsAre("z"));
    ExpectRows(**cluster, "z", 100);
    EXPECT_EQ(ManifestOf(*crashed, 0).tables[0].name, "a");
    crashed->SetCapacity(uint64_t{1} << 40);
    for (int node = 0; node < kNodes; ++node) {
      while (!(*cluster)->database(node).log_health().ok()) SleepForNanos(1'000'000);  // it tries again every 100 ms
    }
    PutRows(**cluster, "z", 200);
    const Status taken = (*cluster)->database(0).Checkpoint();
    ASSERT_TRUE(taken.ok()) << taken;
    EXPECT_EQ(ManifestOf(*crashed, 0).tables[0].name, "a");
  }
  auto cluster = Open(crashed, {}, kNodes);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_THAT(NamesOnAll(**cluster), ElementsAre("z"));
  ExpectRows(**cluster, "z", 200);
}

// The nodes are opened, and the tables change before they start.
TEST(CatalogNodesTest, AChangeAfterOpenIsNoticed) {
  const Disk disk = NewDisk();
  { ASSERT_TRUE(Open(disk, {Spread("a")}, kNodes).ok()); }
  auto fabric = rdma::ShmFabric::InProcess({.num_nodes = kNodes, .bytes_per_node = uint64_t{1} << 28});
  std::vector<std::unique_ptr<Database>> databases;
  std::vector<Database*> nodes;
  for (int node = 0; node < kNodes; ++node) {
    databases.push_back(
        *Database::Open(fabric->get(), static_cast<rdma::NodeId>(node), {.directory = "/data", .files = disk}));
    nodes.push_back(databases.back().get());
  }
  log::Manifest manifest = ManifestOf(*disk, 2);
  manifest.catalog_generation = 1;
  ASSERT_TRUE(log::WriteManifest(*disk, "/data/node-2", manifest).ok());
  const Status refused = OnAllNodes(nodes, [](Database& node) { return node.Start(); });
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(Message(refused), HasSubstr("open it again"));
  nodes.clear();
  databases.clear();
  auto cluster = Open(disk, {}, kNodes);
  EXPECT_TRUE(cluster.ok()) << cluster.status();
}

// The manifest of one node cannot be written, or not for long: nothing has changed on any node, also after a crash.
TEST(CatalogNodesTest, AnErrorOfOneNodesDiskChangesNothing) {
  for (int node = 0; node < kNodes; ++node) {
    const Disk disk = NewDisk();
    const std::string path = absl::StrCat("/data/node-", node, "/MANIFEST");
    {
      auto cluster = Open(disk, {Spread("a")}, kNodes);
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      PutRows(**cluster, "a", 100);
      disk->Schedule({.operation = log::DiskOperation::kWrite, .times = 1000, .path_contains = path});
      const Status refused = Rename(**cluster, "a", "z");
      EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
      EXPECT_THAT(Message(refused), HasSubstr(absl::StrCat("when a table is renamed: node ", node, ": ")));
      EXPECT_THAT(Message(refused), HasSubstr("It was done on no node"));
      // The numbers of these tables are used up, their memory is not.
      uint64_t taken = 0;
      for (int i = 0; i < 4; ++i) {
        const Status created = Create(**cluster, OrderedTable("new", Placement::ByHash()));
        EXPECT_TRUE(absl::IsDataLoss(created)) << created;
        EXPECT_THAT(Message(created), HasSubstr(absl::StrCat("when a table is created: node ", node, ": ")));
        const rdma::SlabStatistics memory = (*cluster)->database(2).memory_statistics();
        if (i == 0) taken = memory.carved_bytes - memory.free_bytes;
        EXPECT_EQ(memory.carved_bytes - memory.free_bytes, taken);
      }
      EXPECT_THAT(NamesOnAll(**cluster), ElementsAre("a"));
      PutRows(**cluster, "a", 200);
      for (uint64_t seed = 1; seed <= 3; ++seed) {
        auto crashed = Open(disk->CrashedCopy(seed), {}, kNodes);
        ASSERT_TRUE(crashed.ok()) << crashed.status();
        EXPECT_THAT(NamesOnAll(**crashed), ElementsAre("a"));
        ExpectRows(**crashed, "a", 200);
      }
      disk->Heal();
      ASSERT_TRUE(Rename(**cluster, "a", "y").ok());
      ASSERT_TRUE(Create(**cluster, Spread("new")).ok());
      EXPECT_EQ((*cluster)->table("new", 2).id(), 5);
      EXPECT_THAT(NamesOnAll(**cluster), ElementsAre("y", "new"));
    }
    auto cluster = Open(disk->CrashedCopy(1), {}, kNodes);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    EXPECT_THAT(NamesOnAll(**cluster), ElementsAre("y", "new"));
    ExpectRows(**cluster, "y", 200);
  }
}

TEST(CatalogNodesTest, WhereNoDiskWorksTheErrorSaysThatItMayBeEither) {
  const Disk disk = NewDisk();
  auto cluster = Open(disk, {Spread("a")}, kNodes);
  disk->Schedule({.operation = log::DiskOperation::kWrite, .times = 1000, .path_contains = "MANIFEST"});
  const Status refused = Rename(**cluster, "a", "z");
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
  EXPECT_THAT(Message(refused), HasSubstr("the directory may have it"));
  EXPECT_THAT(NamesOnAll(**cluster), ElementsAre("a"));
}

// The power goes at every operation of a change.
TEST(CatalogNodesTest, ACrashLeavesTheOldCatalogOrTheNewOne) {
  const Disk first = NewDisk();
  {
    auto cluster = Open(first, {Spread("a"), Spread("b")}, kNodes);
    PutRows(**cluster, "a", 100);
    PutRows(**cluster, "b", 300);
  }
  const DiskImage image = ImageOf(*first);
  std::set<std::string> seen;
  for (uint64_t at = 1;; ++at) {
    SCOPED_TRACE(testing::Message() << "power cut at operation " << at);
    const Disk disk = DiskOf(image, at);
    std::atomic<uint64_t> operations{0};
    bool created = false;
    bool put = false;
    bool renamed = false;
    {
      auto cluster =
          DurableCluster::Open(disk, {}, {.nodes = kNodes, .database = {.durable_within = absl::Milliseconds(20)}});
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      BreakAtManifest(disk, at, /*power_cut=*/true, &operations);
      created = Create(**cluster, Spread("c")).ok();
      put = created && Put(**cluster, "c", 2, 2).ok();
      renamed = Rename(**cluster, "a", "z").ok();
      std::vector<std::string> names = {renamed ? "z" : "a", "b"};
      if (created) names.emplace_back("c");
      EXPECT_EQ(NamesOnAll(**cluster), names);
      disk->SetOptions({});
    }
    if (operations.load() < at) {
      EXPECT_GT(at, 18u) << "six replacements of a file have more operations than that";
      break;
    }
    disk->Heal();
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      auto cluster = Open(disk->CrashedCopy(at * 10 + seed), {}, kNodes);
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      const bool has_z = (*cluster)->database().FindTable("z") != nullptr;
      const bool has_c = (*cluster)->database().FindTable("c") != nullptr;
      std::vector<std::string> names = {has_z ? "z" : "a", "b"};
      if (has_c) names.emplace_back("c");
      EXPECT_EQ(NamesOnAll(**cluster), names);
      EXPECT_TRUE(has_z || !renamed);
      EXPECT_TRUE(has_c || !created);
      if (put) {
        EXPECT_EQ(Get(**cluster, "c", 2).value(), 2u);
      }
      ExpectRows(**cluster, has_z ? "z" : "a", 100);
      ExpectRows(**cluster, "b", 300);
      seen.insert(absl::StrCat(has_c ? "c" : "", has_z ? "z" : ""));
    }
  }
  EXPECT_THAT(seen, ElementsAre("", "c", "cz"));
}

}  // namespace
}  // namespace gannet::txn
