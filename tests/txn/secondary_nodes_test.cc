// Secondary indexes that the nodes of one fabric make together, while transactions of all nodes run.
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
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
#include "tests/txn/nodes_helpers.h"
#include "tests/txn/secondary_changes.h"
#include "tests/txn/secondary_helpers.h"
#include "txn/all_nodes.h"
#include "txn/bulk_loader.h"
#include "txn/durable/data_directory.h"
#include "txn/run/manual_transaction.h"
#include "txn/run/session.h"

namespace gannet::txn {
namespace {

using ::testing::HasSubstr;

TableOptions SpreadPeople(IndexKind kind = IndexKind::kXStore) {
  TableOptions people = People(kind);
  people.placement = Placement::ByHash();
  return people;
}

Status Make(DurableCluster& cluster, const SecondaryIndexOptions& options) {
  return CreateIndexOnAllNodes(NodesOf(cluster), options);
}

std::string MailOfKey(uint64_t key) {
  return absl::StrCat("p", key);
}

// Rows of every node, put there by every node.
void PutPeople(DurableCluster& cluster, uint64_t from, uint64_t to) {
  for (uint64_t key = from; key < to; ++key) {
    const Status put = PutPerson(cluster.database(static_cast<int>(key % kNodes)), key,
                                 MakePerson(MailOfKey(key), static_cast<uint32_t>(key % 7)));
    ASSERT_TRUE(put.ok()) << put;
  }
}

// Compares from every node, by all indexes that are complete.
void ExpectSameOnAll(DurableCluster& cluster, PeopleRows* rows = nullptr) {
  for (int node = 0; node < kNodes; ++node) {
    const Status same = ComparePeople(cluster.database(node), rows);
    EXPECT_TRUE(same.ok()) << "node " << node << ": " << same;
  }
}

// Whether the index is complete, which is the same on all nodes.
bool IsCompleteOnAll(DurableCluster& cluster, const std::string& name) {
  const auto is_complete = [&](int node) {
    const SecondaryIndex* const index = cluster.database(node).FindIndex(name);
    return index != nullptr && index->is_complete();
  };
  for (int node = 1; node < kNodes; ++node) EXPECT_EQ(is_complete(node), is_complete(0)) << node;
  return is_complete(0);
}

TEST(SecondaryNodesTest, AnIndexIsMadeOfTheRowsOfAllNodes) {
  for (const ReadPathPolicy path : {ReadPathPolicy::kOneSided, ReadPathPolicy::kCall}) {
    const Disk disk = NewDisk();
    SecondaryIndexOptions by_city = ByCity();
    by_city.placement = Placement::ByHash();
    {
      auto cluster = DurableCluster::Open(disk, {SpreadPeople()}, {.nodes = kNodes, .database = {.read_path = path}});
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      std::vector<std::unique_ptr<Session>> before;
      for (Database* node : NodesOf(**cluster)) before.push_back(*node->OpenSession());
      PutPeople(**cluster, 0, 400);
      Status made = Make(**cluster, by_city);
      ASSERT_TRUE(made.ok()) << made;
      made = Make(**cluster, ByMail());
      ASSERT_TRUE(made.ok()) << made;
      EXPECT_TRUE(absl::IsAlreadyExists(Make(**cluster, ByMail())));
      PeopleRows rows;
      ExpectSameOnAll(**cluster, &rows);
      EXPECT_EQ(rows.size(), 400u);
      // The rows are found from each node, also by sessions that are older than the indexes.
      PutPeople(**cluster, 400, 430);
      for (int node = 0; node < kNodes; ++node) {
        const SecondaryIndex& by_mail = *(*cluster)->database(node).FindIndex("by_mail");
        EXPECT_TRUE(by_mail.is_complete());
        for (uint64_t key = 395; key < 430; ++key) {
          const Status found =
              before[static_cast<size_t>(node)]->RunBlocking([&](Transaction& t) -> coro::Task<Status> {
                const std::string mail = MailOfKey(key);
                const StatusOr<RowBy> row = co_await t.GetBy(by_mail, Key::Tuple(mail));
                if (!row.ok()) co_return row.status();
                EXPECT_EQ(row->key.integer(), key);
                co_return absl::OkStatus();
              });
          EXPECT_TRUE(found.ok()) << found;
        }
        const Status twice = PutPerson((*cluster)->database(node), 1000, MakePerson("p7", 1));
        EXPECT_TRUE(absl::IsAlreadyExists(twice)) << twice;
      }
      for (int node = 0; node < kNodes; ++node) {
        EXPECT_EQ(ManifestOf(*disk, node).tables, ManifestOf(*disk, 0).tables);
        EXPECT_TRUE(ManifestOf(*disk, node).tables.back().secondary->complete);
      }
      before.clear();
    }
    auto cluster = Open(disk->CrashedCopy(1), {SpreadPeople()}, kNodes);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    EXPECT_TRUE(IsCompleteOnAll(**cluster, "by_city"));
    EXPECT_TRUE(IsCompleteOnAll(**cluster, "by_mail"));
    PeopleRows rows;
    ExpectSameOnAll(**cluster, &rows);
    EXPECT_EQ(rows.size(), 430u);
    // A program makes it each time: by one call, or on each node.
    EXPECT_TRUE(Make(**cluster, ByMail()).ok());
    EXPECT_TRUE((*cluster)->database(2).CreateIndex(by_city).ok());
  }
}

TEST(SecondaryNodesTest, ADuplicateKeyIsNamedAndTheIndexIsTakenBack) {
  const Disk disk = NewDisk();
  {
    auto cluster = Open(disk, {SpreadPeople()}, kNodes);
    PutPeople(**cluster, 0, 100);
    ASSERT_TRUE(PutPerson((*cluster)->database(1), 100, MakePerson("p40", 1)).ok());
    const Status refused = Make(**cluster, ByMail());
    EXPECT_TRUE(absl::IsAlreadyExists(refused)) << refused;
    EXPECT_THAT(Message(refused), HasSubstr("index 'by_mail' of table 'people', key (\"p40\")"));
    EXPECT_THAT(Message(refused), HasSubstr("table 'people', key 40"));
    EXPECT_THAT(Message(refused), HasSubstr("table 'people', key 100"));
    EXPECT_FALSE(IsCompleteOnAll(**cluster, "by_mail"));
    for (int node = 0; node < kNodes; ++node) {
      Database& database = (*cluster)->database(node);
      const SecondaryIndex& index = *database.FindIndex("by_mail");
      const Status read = database.Run([&](auto& t) { return t.GetBy(index, Key::Tuple("p1")).status(); });
      EXPECT_TRUE(absl::IsFailedPrecondition(read)) << read;
      // No node keeps it, and nothing is left of it.
      EXPECT_TRUE(PutPerson(database, 200 + static_cast<uint64_t>(node), MakePerson("p1", 1)).ok());
      for (const TableStatistics& statistics : database.table_statistics()) {
        if (statistics.table == "by_mail") {
          EXPECT_EQ(statistics.index.keys, 0u) << node;
        }
      }
    }
    for (uint64_t key = 200; key < 203; ++key) {
      Database& database = (*cluster)->database(0);
      ASSERT_TRUE(database.Run([&](auto& t) { return t.Remove(*database.FindTable("people"), key); }).ok());
    }
    ASSERT_TRUE((*cluster)->Close().ok());
  }
  auto cluster = Open(disk, {}, kNodes);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_TRUE(absl::IsAlreadyExists(Make(**cluster, ByMail())));
  ASSERT_TRUE(PutPerson((*cluster)->database(2), 100, MakePerson("p100", 1)).ok());
  const Status made = Make(**cluster, ByMail());
  ASSERT_TRUE(made.ok()) << made;
  EXPECT_TRUE(IsCompleteOnAll(**cluster, "by_mail"));
  ExpectSameOnAll(**cluster);
}

TEST(SecondaryNodesTest, WhatIsWrongIsSaid) {
  auto cluster = Open(NewDisk(), {SpreadPeople()}, kNodes);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const Status alone = (*cluster)->database(1).CreateIndex(ByMail()).status();
  EXPECT_TRUE(absl::IsUnimplemented(alone)) << alone;
  EXPECT_THAT(Message(alone), HasSubstr("use CreateIndexOnAllNodes"));
  SecondaryIndexOptions wrong = ByMail();
  wrong.table = "nobody";
  EXPECT_TRUE(absl::IsNotFound(Make(**cluster, wrong)));
  wrong = ByMail();
  wrong.fields = {};
  EXPECT_TRUE(absl::IsInvalidArgument(Make(**cluster, wrong)));
  wrong = ByMail();
  wrong.name = "people";
  EXPECT_TRUE(absl::IsAlreadyExists(Make(**cluster, wrong)));
  std::vector<Database*> nodes = NodesOf(**cluster);
  nodes.pop_back();
  EXPECT_TRUE(absl::IsInvalidArgument(CreateIndexOnAllNodes(nodes, ByMail())));
  EXPECT_EQ((*cluster)->database(0).FindIndex("by_mail"), nullptr);
  // An index that the directory has differs.
  ASSERT_TRUE(Make(**cluster, ByMail()).ok());
}

TEST(SecondaryNodesTest, AnotherIndexOfThatNameIsRefused) {
  const Disk disk = NewDisk();
  { ASSERT_TRUE(Make(**Open(disk, {SpreadPeople()}, kNodes), ByMail()).ok()); }
  auto cluster = Open(disk, {}, kNodes);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  SecondaryIndexOptions wrong = ByMail();
  wrong.unique = false;
  const Status refused = Make(**cluster, wrong);
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_TRUE(Make(**cluster, ByMail()).ok()) << "no node took the wrong one";
}

// A transaction of any node that began before may not know the index.
TEST(SecondaryNodesTest, WaitsForOpenTransactionsOfEveryNode) {
  for (int node = 0; node < kNodes; ++node) {
    auto cluster = Open(NewDisk(), {SpreadPeople()}, kNodes);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    Database& database = (*cluster)->database(node);
    const Table& people = *database.FindTable("people");
    {
      ManualTransaction open = database.Begin().value();
      ASSERT_TRUE(open->Insert(people, 1, MakePerson("ann", 1)).ok());
      SecondaryIndexOptions options = ByMail();
      options.wait_for_transactions = absl::Milliseconds(20);
      const Status late = Make(**cluster, options);
      EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
      ASSERT_TRUE(open.Commit().ok());
    }
    EXPECT_FALSE(IsCompleteOnAll(**cluster, "by_mail"));
    ManualTransaction open = database.Begin().value();
    ASSERT_TRUE(open->Insert(people, 2, MakePerson("bob", 1)).ok());
    std::thread commits([&] {
      SleepForNanos(20'000'000);
      EXPECT_TRUE(open.Commit().ok());
    });
    const Status made = Make(**cluster, ByMail());
    commits.join();
    ASSERT_TRUE(made.ok()) << made;
    PeopleRows rows;
    ExpectSameOnAll(**cluster, &rows);
    EXPECT_EQ(rows.size(), 2u);
  }
}

TEST(SecondaryNodesTest, StopsEarlyAndGoesOnLater) {
  std::atomic<bool> stop{false};
  auto cluster = DurableCluster::Open(NewDisk(), {SpreadPeople()}, {.nodes = kNodes, .database = {.stop = &stop}});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  PutPeople(**cluster, 0, 50);
  stop = true;
  const Status stopped = Make(**cluster, ByMail());
  EXPECT_TRUE(absl::IsCancelled(stopped)) << stopped;
  stop = false;
  PutPeople(**cluster, 50, 60);
  const Status made = Make(**cluster, ByMail());
  ASSERT_TRUE(made.ok()) << made;
  ExpectSameOnAll(**cluster);
}

TEST(SecondaryNodesTest, RowsThatAreNotLogged) {
  for (const DurabilityMode mode : {DurabilityMode::kSync, DurabilityMode::kAsync, DurabilityMode::kNone}) {
    const Disk disk = NewDisk();
    {
      auto cluster = DurableCluster::Open(disk, {SpreadPeople()}, {.nodes = kNodes, .database = {.durability = mode}});
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      for (Database* node : NodesOf(**cluster)) {
        const Table& people = *node->FindTable("people");
        auto session = node->OpenSession();
        BulkLoader loader(session->get(), &people);
        for (uint64_t key = 0; key < 300; ++key) {
          if (people.OwnerOf(Key(key), node->node_id()) != node->node_id()) continue;
          ASSERT_TRUE(loader.Add(key, MakePerson(MailOfKey(key), 1)).ok());
        }
        ASSERT_TRUE(loader.Finish().ok());
      }
      const Status made = Make(**cluster, ByMail());
      ASSERT_TRUE(made.ok()) << made;
      ExpectSameOnAll(**cluster);
    }
    auto cluster = Open(disk->CrashedCopy(1), {}, kNodes);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    EXPECT_TRUE(IsCompleteOnAll(**cluster, "by_mail"));
    PeopleRows rows;
    ExpectSameOnAll(**cluster, &rows);
    EXPECT_EQ(rows.size(), 300u);
  }
}

// Nodes without rows make it, too. One that comes back compares it with that of the others, also if it is complete.
TEST(SecondaryNodesTest, ClientNodesTakePart) {
  NodesWithClient nodes;
  for (Database* const node : nodes.all()) ASSERT_TRUE(node->CreateTable(SpreadPeople()).ok());
  ASSERT_TRUE(nodes.Start().ok());
  for (uint64_t key = 0; key < 30; ++key) {
    ASSERT_TRUE(PutPerson(nodes.client(), key, MakePerson(key == 29 ? "p1" : MailOfKey(key), 1)).ok());
  }
  EXPECT_TRUE(absl::IsAlreadyExists(CreateIndexOnAllNodes(nodes.all(), ByMail())));
  ASSERT_TRUE(PutPerson(*nodes.all()[0], 29, MakePerson("p29", 1)).ok());
  const Status made = CreateIndexOnAllNodes(nodes.all(), ByMail());
  ASSERT_TRUE(made.ok()) << made;
  for (Database* const node : nodes.all()) EXPECT_TRUE(ComparePeople(*node).ok());
  Database& client = nodes.Reopen();
  EXPECT_TRUE(client.CreateTable(SpreadPeople()).ok());
  EXPECT_TRUE(client.CreateIndex(ByMail()).ok());
  const Status back = client.Start();
  ASSERT_TRUE(back.ok()) << back;
  EXPECT_TRUE(ComparePeople(client).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(PutPerson(client, 50, MakePerson("p1", 1))));
}

// For a client that comes back the index would be complete from the start, and for the others it is not.
TEST(SecondaryNodesTest, AClientDoesNotTakeAnIncompleteIndexForACompleteOne) {
  auto fabric = rdma::ShmFabric::InProcess({.num_nodes = 2, .bytes_per_node = uint64_t{1} << 28});
  const auto open = [&](rdma::NodeId node) {
    auto database = *Database::Open(fabric->get(), node, {.data_nodes = 1});
    EXPECT_TRUE(database->CreateTable(People()).ok());
    return database;
  };
  auto owner = open(0);
  auto client = open(1);
  std::vector<Database*> nodes = {owner.get(), client.get()};
  ASSERT_TRUE(OnAllNodes(nodes, [](Database& node) { return node.Start(); }).ok());
  ASSERT_TRUE(PutPerson(*client, 1, MakePerson("ann", 1)).ok());
  ASSERT_TRUE(PutPerson(*client, 2, MakePerson("ann", 2)).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(CreateIndexOnAllNodes(nodes, ByMail())));
  client.reset();
  client = open(1);
  ASSERT_TRUE(client->CreateIndex(ByMail()).ok());
  const Status refused = client->Start();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(Message(refused), HasSubstr("or in whether that is complete"));
}

// A node dies before the index is complete: no survivor may read by it.
TEST(SecondaryNodesTest, ADeadNodeEndsIt) {
  auto fabric = rdma::ShmFabric::InProcess({.num_nodes = 2, .bytes_per_node = uint64_t{1} << 28});
  std::vector<std::unique_ptr<Database>> databases;
  std::vector<Database*> nodes;
  for (rdma::NodeId node = 0; node < 2; ++node) {
    databases.push_back(*Database::Open(fabric->get(), node, {.data_nodes = 1}));
    nodes.push_back(databases.back().get());
    ASSERT_TRUE(nodes.back()->CreateTable(People()).ok());
  }
  ASSERT_TRUE(OnAllNodes(nodes, [](Database& node) { return node.Start(); }).ok());
  ASSERT_TRUE(PutPerson(*nodes[1], 1, MakePerson("ann", 1)).ok());
  ManualTransaction open = nodes[0]->Begin().value();  // the build waits for it
  std::thread dies([&] {
    while (nodes[0]->FindIndex("by_mail") == nullptr) std::this_thread::yield();
    (*fabric)->Kill(1);
    EXPECT_TRUE(open.Commit().ok());
  });
  const Status ended = CreateIndexOnAllNodes(nodes, ByMail());
  dies.join();
  EXPECT_TRUE(absl::IsUnavailable(ended)) << ended;
  EXPECT_FALSE(nodes[0]->FindIndex("by_mail")->is_complete());
  EXPECT_TRUE(absl::IsUnavailable(CreateIndexOnAllNodes(nodes, ByMail())));
  EXPECT_TRUE(PutPerson(*nodes[0], 2, MakePerson("bob", 1)).ok());
}

// The power goes at every operation on a manifest. Then the index is complete on all nodes and right, or on none, and
// can be made.
TEST(SecondaryNodesTest, ABreakAtAManifestLeavesAnIndexThatIsRightOrNone) {
  const Disk first = NewDisk();
  {
    auto cluster = Open(first, {SpreadPeople()}, kNodes);
    PutPeople(**cluster, 0, 60);
    ASSERT_TRUE((*cluster)->Close().ok());
  }
  const DiskImage image = ImageOf(*first);
  std::map<std::string, int> seen;
  for (const bool power_cut : {true, false}) {
    for (uint64_t at = 1;; ++at) {
      SCOPED_TRACE(testing::Message() << (power_cut ? "power cut" : "error") << " at operation " << at);
      const Disk disk = DiskOf(image, at);
      std::atomic<uint64_t> operations{0};
      bool made = false;
      uint64_t put = 0;
      {
        auto cluster =
            DurableCluster::Open(disk, {}, {.nodes = kNodes, .database = {.durable_within = absl::Milliseconds(20)}});
        ASSERT_TRUE(cluster.ok()) << cluster.status();
        BreakAtManifest(disk, at, power_cut, &operations);
        made = Make(**cluster, ByMail()).ok();
        for (uint64_t key = 60; key < 63; ++key) {
          Database& database = (*cluster)->database(static_cast<int>(key % kNodes));
          if (PutPerson(database, key, MakePerson(MailOfKey(key), 2)).ok()) put = key;
        }
        disk->SetOptions({});
      }
      if (operations.load() < at) {
        EXPECT_GT(at, 27u) << "nine replacements of a file have more operations than that";
        break;
      }
      disk->Heal();
      auto cluster = Open(power_cut ? disk->CrashedCopy(at) : disk, {}, kNodes);
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      const bool complete = IsCompleteOnAll(**cluster, "by_mail");
      EXPECT_TRUE(complete || !made);
      const bool there = (*cluster)->database().FindIndex("by_mail") != nullptr;
      ++seen[complete ? "complete" : there ? "incomplete" : "none"];
      PeopleRows rows;
      ExpectSameOnAll(**cluster, &rows);
      EXPECT_TRUE(put == 0 || rows.contains(put));
      ASSERT_TRUE(PutPerson((*cluster)->database(1), 1, MakePerson("new", 3)).ok());
      if (!complete) {
        const Status again = Make(**cluster, ByMail());
        ASSERT_TRUE(again.ok()) << again;
      }
      ExpectSameOnAll(**cluster);
    }
  }
  EXPECT_GT(seen["none"], 0);
  EXPECT_GT(seen["incomplete"], 0);
  EXPECT_GT(seen["complete"], 0);
}

// One node's manifest cannot be written from some change on, and that stays so: the index is on no node, nobody keeps
// it, and it can be made when the disk works again.
TEST(SecondaryNodesTest, AnErrorOfOneNodesDiskTakesItBack) {
  for (int node = 0; node < kNodes; ++node) {
    for (const int good : {0, 1, 2}) {  // changes of manifests: the table, "not complete", "complete"
      SCOPED_TRACE(testing::Message() << "node " << node << ", after " << good << " changes");
      const Disk disk = NewDisk();
      const std::string path = absl::StrCat("/data/node-", node, "/MANIFEST");
      {
        auto cluster = Open(disk, {SpreadPeople()}, kNodes);
        PutPeople(**cluster, 0, 40);
        std::atomic<int> left{good};
        disk->SetOptions({.before = [&](log::DiskOperation operation, const std::string& at) {
          if (operation != log::DiskOperation::kWrite || !at.starts_with(path)) return;
          if (left.fetch_sub(1) == 0) {
            disk->Schedule({.operation = operation, .times = 1000, .path_contains = path});
          }
        }});
        const Status refused = Make(**cluster, ByMail());
        EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
        EXPECT_THAT(Message(refused), HasSubstr(absl::StrCat(": node ", node, ": ")));
        EXPECT_THAT(Message(refused), HasSubstr("It was done on no node"));
        if (good > 0) {
          EXPECT_THAT(Message(refused), HasSubstr("when index 'by_mail' of table 'people' is made"));
        }
        EXPECT_FALSE(IsCompleteOnAll(**cluster, "by_mail"));
        for (int at = 0; at < kNodes; ++at) {
          const Status twice = PutPerson((*cluster)->database(at), 100, MakePerson("p1", 1));
          EXPECT_TRUE(twice.ok()) << twice;
        }
        auto crashed = Open(disk->CrashedCopy(7), {}, kNodes);
        ASSERT_TRUE(crashed.ok()) << crashed.status();
        EXPECT_FALSE(IsCompleteOnAll(**crashed, "by_mail"));
        disk->SetOptions({});
        disk->Heal();
        ASSERT_TRUE(PutPerson((*cluster)->database(2), 100, MakePerson("p100", 1)).ok());
        const Status made = Make(**cluster, ByMail());
        ASSERT_TRUE(made.ok()) << made;
        ExpectSameOnAll(**cluster);
      }
      auto cluster = Open(disk->CrashedCopy(1), {}, kNodes);
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      EXPECT_TRUE(IsCompleteOnAll(**cluster, "by_mail"));
      ExpectSameOnAll(**cluster);
    }
  }
}

// The log of one node cannot be written while entries are added.
TEST(SecondaryNodesTest, AnErrorOfOneNodesLogEndsIt) {
  const Disk disk = NewDisk();
  auto cluster = DurableCluster::Open(disk, {SpreadPeople()},
                                      {.nodes = kNodes, .database = {.durable_within = absl::Milliseconds(500)}});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  PutPeople(**cluster, 0, 40);
  disk->Schedule({.operation = log::DiskOperation::kWrite, .times = 1'000'000, .path_contains = "/data/node-1/log"});
  const Status refused = Make(**cluster, ByMail());
  EXPECT_FALSE(refused.ok());
  EXPECT_FALSE(IsCompleteOnAll(**cluster, "by_mail"));
  auto crashed = Open(disk->CrashedCopy(3), {}, kNodes);
  ASSERT_TRUE(crashed.ok()) << crashed.status();
  EXPECT_FALSE(IsCompleteOnAll(**crashed, "by_mail"));
  const Status made = Make(**crashed, ByMail());
  ASSERT_TRUE(made.ok()) << made;
  ExpectSameOnAll(**crashed);
}

// A program that makes its indexes before Start finds one that a crash left incomplete.
TEST(SecondaryNodesTest, AnIncompleteIndexIsMadeAfterStart) {
  const Disk disk = NewDisk();
  {
    auto cluster = Open(disk, {SpreadPeople()}, kNodes);
    PutPeople(**cluster, 0, 40);
    ASSERT_TRUE(Make(**cluster, ByMail()).ok());
  }
  for (int node = 0; node < kNodes; ++node) {
    log::Manifest manifest = ManifestOf(*disk, node);
    manifest.tables.back().secondary->complete = false;
    ASSERT_TRUE(log::WriteManifest(*disk, NodeDirectory("/data", node, kNodes), manifest).ok());
  }
  {
    auto fabric = rdma::ShmFabric::InProcess({.num_nodes = kNodes, .bytes_per_node = uint64_t{1} << 28});
    auto database = Database::Open(fabric->get(), 1, {.directory = "/data", .files = disk});
    ASSERT_TRUE(database.ok()) << database.status();
    const Status early = (*database)->CreateIndex(ByMail()).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(early)) << early;
    EXPECT_THAT(Message(early), HasSubstr("then CreateIndexOnAllNodes"));
  }
  auto cluster = Open(disk, {}, kNodes);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_FALSE(IsCompleteOnAll(**cluster, "by_mail"));
  ASSERT_TRUE(PutPerson((*cluster)->database(1), 5, MakePerson("other", 1)).ok());  // nobody keeps the old entries
  const Status made = Make(**cluster, ByMail());
  ASSERT_TRUE(made.ok()) << made;
  EXPECT_TRUE(IsCompleteOnAll(**cluster, "by_mail"));
  ExpectSameOnAll(**cluster);
}

// Threads of all nodes change the rows while indexes are made, at the same time as tables; one-sided and by calls.
TEST(SecondaryNodesStressTest, IndexesAreMadeAndReadWhileRowsChange) {
  constexpr uint64_t kKeys = 60;
  uint64_t seed = 0;
  for (const IndexKind kind : {IndexKind::kXStore, IndexKind::kBlink, IndexKind::kRolex}) {
    for (const ReadPathPolicy path : {ReadPathPolicy::kOneSided, ReadPathPolicy::kCall}) {
      SCOPED_TRACE(testing::Message() << "seed " << ++seed);
      const Disk disk = NewDisk(seed);
      {
        auto cluster = DurableCluster::Open(
            disk, {SpreadPeople(kind)},
            {.nodes = kNodes, .database = {.read_path = path, .durability = DurabilityMode::kAsync}});
        ASSERT_TRUE(cluster.ok()) << cluster.status();
        std::atomic<bool> stop{false};
        std::atomic<bool> pause{false};
        std::atomic<uint64_t> changes{0};
        std::vector<std::thread> writers;
        for (int node = 0; node < kNodes; ++node) {
          writers.emplace_back([&, node] {
            Random random(seed * 100 + static_cast<uint64_t>(node));
            while (!stop.load()) {
              if (pause.load()) {
                SleepForNanos(100'000);
                continue;
              }
              const Status changed = ChangePeople((*cluster)->database(node), random, kKeys);
              EXPECT_TRUE(changed.ok()) << changed;
              ++changes;
            }
          });
        }
        const auto wait_for_changes = [&](uint64_t more) {
          for (const uint64_t before = changes.load(); changes.load() < before + more;) std::this_thread::yield();
        };
        wait_for_changes(100);
        SecondaryIndexOptions by_city = ByCity();
        by_city.index = kind;
        by_city.placement = Placement::ByHash();
        const Status made = Make(**cluster, by_city);
        EXPECT_TRUE(made.ok()) << made;
        // Rows collide at first, because nothing prevents it. If they always do, the writers pause.
        constexpr int kTimesWithWriters = 50;
        SecondaryIndexOptions by_mail = ByMail();
        by_mail.index = kind;
        Status unique = Make(**cluster, by_mail);
        for (int i = 0; absl::IsAlreadyExists(unique) && i < 200; ++i) {
          EXPECT_THAT(Message(unique), HasSubstr("index 'by_mail' of table 'people', key ("));
          if (i >= kTimesWithWriters) pause.store(true);
          Database& database = (*cluster)->database(i % kNodes);
          for (uint64_t key = 0; key < kKeys; ++key) {
            const Status removed = database.Run([&](auto& t) { return t.Remove(*database.FindTable("people"), key); });
            EXPECT_TRUE(removed.ok() || absl::IsNotFound(removed)) << removed;
          }
          unique = Make(**cluster, by_mail);
        }
        pause.store(false);
        EXPECT_TRUE(unique.ok()) << unique;
        for (int i = 0; i < 6; ++i) {
          const Status same = ComparePeople((*cluster)->database(i % kNodes));
          EXPECT_TRUE(same.ok()) << same;
          wait_for_changes(10);
        }
        stop.store(true);
        for (std::thread& writer : writers) writer.join();
        ExpectSameOnAll(**cluster);
      }
      auto cluster = Open(disk->CrashedCopy(seed), {}, kNodes);
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      EXPECT_TRUE(IsCompleteOnAll(**cluster, "by_city"));
      EXPECT_TRUE(IsCompleteOnAll(**cluster, "by_mail"));
      ExpectSameOnAll(**cluster);
    }
  }
}

}  // namespace
}  // namespace gannet::txn
