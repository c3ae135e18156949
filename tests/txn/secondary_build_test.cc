// How secondary indexes are made of rows that are there, on one node and on several, while transactions run. What all
// changes of tables have in common is in schema_change_test.cc.
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/thread.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "log/manifest/manifest.h"
#include "tests/index/kinds.h"
#include "tests/support/thorough.h"
#include "tests/txn/catalog_helpers.h"
#include "tests/txn/schema_helpers.h"
#include "tests/txn/secondary_changes.h"
#include "tests/txn/secondary_helpers.h"
#include "tests/txn/simulated_cluster.h"
#include "txn/bulk_loader.h"
#include "txn/run/manual_transaction.h"
#include "txn/run/session.h"

namespace gannet::txn {
namespace secondary_build_test {

using ::testing::HasSubstr;

// Opens nodes with a table of people, whose rows are spread over them.
std::unique_ptr<DurableCluster> OpenPeople(const Disk& disk, int nodes, const DurableOptions& options = {}) {
  return OpenNodes(disk, nodes, {SpreadPeople()}, options);
}

std::string MailOfKey(uint64_t key) {
  return absl::StrCat("p", key);
}

// Writes rows of every node, from every node.
void PutPeople(DurableCluster& cluster, uint64_t from, uint64_t to) {
  for (uint64_t key = from; key < to; ++key) {
    Database& node = *cluster.nodes()[key % cluster.nodes().size()];
    const Status put = PutPerson(node, key, MakePerson(MailOfKey(key), static_cast<uint32_t>(key % 7)));
    ASSERT_TRUE(put.ok()) << put;
  }
}

bool IsCompleteOnAll(DurableCluster& cluster, const std::string& name) {
  return OnAll(cluster, [&](const Database& node) {
    const SecondaryIndex* const index = node.FindIndex(name);
    return index != nullptr && index->is_complete();
  });
}

class SecondaryBuildTest : public NodesTest {};
INSTANTIATE_TEST_SUITE_P(, SecondaryBuildTest, testing::Values(1, kNodes), NameOfNodes);

TEST_P(SecondaryBuildTest, AnIndexIsMadeOfTheRowsOfAllNodes) {
  for (const Way& way : WaysOf(nodes())) {
    const Disk disk = NewDisk();
    SecondaryIndexOptions by_city = ByCity();
    by_city.placement = Placement::ByHash();
    {
      const auto cluster = OpenPeople(disk, nodes(), way.Options());
      std::vector<std::unique_ptr<Session>> before = OpenSessions(*cluster);
      PutPeople(*cluster, 0, 400);
      for (const SecondaryIndexOptions& index : {by_city, ByMail()}) {
        const Status made = CreateIndex(cluster->nodes(), index);
        ASSERT_TRUE(made.ok()) << made;
      }
      PeopleRows rows;
      ExpectSameOnAll(*cluster, &rows);
      EXPECT_EQ(rows.size(), 400u);
      // From each node, also by sessions that are older than the indexes.
      PutPeople(*cluster, 400, 430);
      for (Database* const node : cluster->nodes()) {
        const SecondaryIndex& by_mail = *node->FindIndex("by_mail");
        EXPECT_TRUE(by_mail.is_complete());
        for (uint64_t key = 395; key < 430; ++key) {
          const Status found = before[node->node_id()]->RunBlocking([&](Transaction& t) -> coro::Task<Status> {
            const std::string mail = MailOfKey(key);
            const StatusOr<RowBy> row = co_await t.GetBy(by_mail, Key::Tuple(mail));
            if (!row.ok()) co_return row.status();
            EXPECT_EQ(row->key.integer(), key);
            co_return absl::OkStatus();
          });
          EXPECT_TRUE(found.ok()) << found;
        }
        const Status twice = PutPerson(*node, 1000, MakePerson("p7", 1));
        EXPECT_TRUE(absl::IsAlreadyExists(twice)) << twice;
      }
      for (int node = 0; node < nodes(); ++node) {
        EXPECT_TRUE(ManifestOf(*disk, node, nodes()).tables.back().secondary->complete);
      }
    }
    const auto cluster = OpenNodes(disk->CrashedCopy(1), nodes(), {SpreadPeople()});
    EXPECT_TRUE(IsCompleteOnAll(*cluster, "by_city"));
    EXPECT_TRUE(IsCompleteOnAll(*cluster, "by_mail"));
    PeopleRows rows;
    ExpectSameOnAll(*cluster, &rows);
    EXPECT_EQ(rows.size(), 430u);
    // A program makes it each time: by one call, or on each node.
    EXPECT_TRUE(CreateIndex(cluster->nodes(), ByMail()).ok());
    EXPECT_TRUE(cluster->database(last()).CreateIndex(by_city).ok());
  }
}

TEST_P(SecondaryBuildTest, ADuplicateKeyIsNamedAndTheIndexIsTakenBack) {
  const Disk disk = NewDisk();
  const auto remove = [](Database& node, uint64_t key) {
    return node.Run([&](auto& t) { return t.Remove(*node.FindTable("people"), key); });
  };
  {
    const auto cluster = OpenPeople(disk, nodes());
    PutPeople(*cluster, 0, 100);
    ASSERT_TRUE(PutPerson(cluster->database(last()), 100, MakePerson("p40", 1)).ok());
    const Status refused = CreateIndex(cluster->nodes(), ByMail());
    EXPECT_TRUE(absl::IsAlreadyExists(refused)) << refused;
    EXPECT_THAT(Message(refused), HasSubstr("index 'by_mail' of table 'people', key (\"p40\")"));
    EXPECT_THAT(Message(refused), HasSubstr("table 'people', key 40"));
    EXPECT_THAT(Message(refused), HasSubstr("table 'people', key 100"));
    if (nodes() == 1) {
      EXPECT_THAT(Message(refused), HasSubstr("key 40 and table 'people', key 100"));
    }
    EXPECT_FALSE(IsCompleteOnAll(*cluster, "by_mail"));
    for (Database* const node : cluster->nodes()) {
      const SecondaryIndex& index = *node->FindIndex("by_mail");
      const Status read = node->Run([&](auto& t) { return t.GetBy(index, Key::Tuple("p1")).status(); });
      EXPECT_TRUE(absl::IsFailedPrecondition(read)) << read;
      // No node keeps it, and nothing is left of it.
      EXPECT_TRUE(PutPerson(*node, 200 + node->node_id(), MakePerson("p1", 1)).ok());
    }
    EXPECT_EQ(KeysOnAll(*cluster, "by_mail"), 0u);
    for (Database* const node : cluster->nodes()) ASSERT_TRUE(remove(*node, 200 + node->node_id()).ok());
    ASSERT_TRUE(cluster->Close().ok());
  }
  const auto cluster = OpenNodes(disk, nodes());
  EXPECT_TRUE(absl::IsAlreadyExists(CreateIndex(cluster->nodes(), ByMail())));
  ASSERT_TRUE(PutPerson(cluster->database(last()), 100, MakePerson("p100", 1)).ok());
  const Status made = CreateIndex(cluster->nodes(), ByMail());
  ASSERT_TRUE(made.ok()) << made;
  EXPECT_TRUE(IsCompleteOnAll(*cluster, "by_mail"));
  ExpectSameOnAll(*cluster);
}

TEST_P(SecondaryBuildTest, ABuildAfterOneThatFailedTakesItsOwnFunction) {
  const auto cluster = OpenPeople(nullptr, nodes());
  PutPeople(*cluster, 0, 20);
  const auto make = [&](const KeyFunction& function) {
    return CreateIndex(cluster->nodes(),
                       {.name = "by_function", .table = "people", .unique = true, .function = function});
  };
  using Row = std::span<const std::byte>;
  const Status refused = make([](const Key&, Row) { return std::optional<index::OwnedKey>(Key(7)); });
  EXPECT_TRUE(absl::IsAlreadyExists(refused)) << refused;
  const Status made =
      make([](const Key& key, Row) { return std::optional<index::OwnedKey>(Key(key.integer() + 100)); });
  ASSERT_TRUE(made.ok()) << made;
  PutPeople(*cluster, 20, 30);
  for (Database* const node : cluster->nodes()) {
    for (uint64_t key = 0; key < 30; ++key) {
      const Status found = node->Run([&](auto& t) -> Status {
        const StatusOr<RowBy> row = t.GetBy(*node->FindIndex("by_function"), key + 100);
        if (!row.ok()) return row.status();
        EXPECT_EQ(row->key.integer(), key);
        return absl::OkStatus();
      });
      EXPECT_TRUE(found.ok()) << found;
    }
  }
}

TEST_P(SecondaryBuildTest, WhatIsWrongIsSaid) {
  const Disk disk = NewDisk();
  {
    const auto cluster = OpenPeople(disk, nodes());
    SecondaryIndexOptions wrong = ByMail();
    wrong.table = "nobody";
    EXPECT_TRUE(absl::IsNotFound(CreateIndex(cluster->nodes(), wrong)));
    wrong = ByMail();
    wrong.fields = {};
    EXPECT_TRUE(absl::IsInvalidArgument(CreateIndex(cluster->nodes(), wrong)));
    wrong = ByMail();
    wrong.name = "people";
    EXPECT_TRUE(absl::IsAlreadyExists(CreateIndex(cluster->nodes(), wrong)));
    for (Database* const node : cluster->nodes()) EXPECT_EQ(node->FindIndex("by_mail"), nullptr);
    ASSERT_TRUE(CreateIndex(cluster->nodes(), ByMail()).ok());
  }
  // An index that the directory has differs.
  const auto cluster = OpenNodes(disk, nodes());
  SecondaryIndexOptions wrong = ByMail();
  wrong.unique = false;
  const Status refused = CreateIndex(cluster->nodes(), wrong);
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_TRUE(CreateIndex(cluster->nodes(), ByMail()).ok()) << "no node took the wrong one";
}

// A transaction of any node that began before may not know the index: whichever is first, its row is in it.
TEST_P(SecondaryBuildTest, RowsOfTransactionsThatBeganBeforeAreInIt) {
  for (int node = 0; node < nodes(); ++node) {
    const auto cluster = OpenPeople(nullptr, nodes());
    Database& database = cluster->database(node);
    const Table& people = *database.FindTable("people");
    ASSERT_TRUE(PutPerson(database, 1, MakePerson("ann", 1)).ok());
    {
      ManualTransaction open = database.Begin().value();
      ASSERT_TRUE(open->Insert(people, 2, MakePerson("bob", 1)).ok());
      std::jthread commits([&] {
        while (people.secondary_indexes() == nullptr) SleepForNanos(100'000);
        EXPECT_TRUE(open.Commit().ok());
        EXPECT_TRUE(database.Run([&](auto& t) { return t.Remove(people, 1); }).ok());
      });
      const Status made = CreateIndex(cluster->nodes(), ByMail());
      ASSERT_TRUE(made.ok()) << made;
    }
    PeopleRows rows;
    ExpectSameOnAll(*cluster, &rows);
    EXPECT_EQ(rows.size(), 1u);
    EXPECT_TRUE(rows.contains(2));
  }
}

// Rows that are in no log yet: those of a load, and those of a database that logs nothing.
TEST_P(SecondaryBuildTest, RowsThatAreNotLogged) {
  for (const DurabilityMode mode : {DurabilityMode::kSync, DurabilityMode::kAsync, DurabilityMode::kNone}) {
    const Disk disk = NewDisk();
    {
      const auto cluster = OpenPeople(disk, nodes(), {.database = {.durability = mode}});
      for (Database* const node : cluster->nodes()) {
        const Table& people = *node->FindTable("people");
        auto session = node->OpenSession();
        BulkLoader loader(session->get(), &people);
        for (uint64_t key = 0; key < 500; ++key) {
          if (people.OwnerOf(Key(key), node->node_id()) != node->node_id()) continue;
          ASSERT_TRUE(loader.Add(key, MakePerson(MailOfKey(key), 1)).ok());
        }
        ASSERT_TRUE(loader.Finish().ok());
      }
      const Status made = CreateIndex(cluster->nodes(), ByMail());
      ASSERT_TRUE(made.ok()) << made;
      ExpectSameOnAll(*cluster);
    }
    const auto cluster = OpenAfterCrash(disk, nodes());
    EXPECT_TRUE(IsCompleteOnAll(*cluster, "by_mail"));
    PeopleRows rows;
    ExpectSameOnAll(*cluster, &rows);
    EXPECT_EQ(rows.size(), 500u);
  }
}

// The log of the last node cannot be written while entries are added.
TEST_P(SecondaryBuildTest, AnErrorOfALogEndsIt) {
  const Disk disk = NewDisk();
  const auto cluster = OpenPeople(disk, nodes(), {.database = {.durable_within = absl::Milliseconds(500)}});
  PutPeople(*cluster, 0, 40);
  FailWrites(*disk, DirectoryOf(last(), nodes()) + "/log");
  EXPECT_FALSE(CreateIndex(cluster->nodes(), ByMail()).ok());
  EXPECT_FALSE(IsCompleteOnAll(*cluster, "by_mail"));
  const auto crashed = OpenAfterCrash(disk, nodes(), 3);
  EXPECT_FALSE(IsCompleteOnAll(*crashed, "by_mail"));
  const Status made = CreateIndex(crashed->nodes(), ByMail());
  ASSERT_TRUE(made.ok()) << made;
  ExpectSameOnAll(*crashed);
}

// A program that makes its indexes before Start finds one that a crash left incomplete.
TEST_P(SecondaryBuildTest, AnIncompleteIndexIsMadeAfterStart) {
  const Disk disk = NewDisk();
  {
    const auto cluster = OpenPeople(disk, nodes());
    PutPeople(*cluster, 0, 40);
    ASSERT_TRUE(CreateIndex(cluster->nodes(), ByMail()).ok());
  }
  for (int node = 0; node < nodes(); ++node) {
    log::Manifest manifest = ManifestOf(*disk, node, nodes());
    manifest.tables.back().secondary->complete = false;
    ASSERT_TRUE(log::WriteManifest(*disk, DirectoryOf(node, nodes()), manifest).ok());
  }
  {
    const auto cluster = OpenNodes(disk, nodes(), {}, {.start = false});
    const Status early = cluster->database(last()).CreateIndex(ByMail()).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(early)) << early;
    EXPECT_THAT(Message(early), HasSubstr(nodes() == 1 ? "before CreateIndex" : "then CreateIndexOnAllNodes"));
  }
  const auto cluster = OpenNodes(disk, nodes());
  EXPECT_FALSE(IsCompleteOnAll(*cluster, "by_mail"));
  ASSERT_TRUE(PutPerson(cluster->database(last()), 5, MakePerson("other", 1)).ok());  // nobody keeps the old entries
  const Status made = CreateIndex(cluster->nodes(), ByMail());
  ASSERT_TRUE(made.ok()) << made;
  EXPECT_TRUE(IsCompleteOnAll(*cluster, "by_mail"));
  ExpectSameOnAll(*cluster);
}

// Threads of all nodes change the rows while indexes are made, at the same time as tables; one-sided and by calls.
TEST_P(SecondaryBuildTest, TransactionsRunMeanwhile) {
  constexpr uint64_t kKeys = 60;
  uint64_t seed = 0;
  for (const IndexKind kind : index::OrderedKinds()) {
    for (const Way& way : WaysOf(nodes())) {
      const uint64_t place = seed++;
      // The gate tries each kind in one of the two ways.
      if ((place / 2 + place) % StepOfPlaces(2) != 0) continue;
      SCOPED_TRACE(testing::Message() << "seed " << seed);
      const Disk disk = NewDisk(seed);
      {
        DurableOptions options = way.Options();
        options.database.durability = DurabilityMode::kAsync;
        const auto cluster = OpenNodes(disk, nodes(), {SpreadPeople(kind)}, options);
        std::atomic<bool> stop{false};
        std::atomic<bool> pause{false};
        std::atomic<uint64_t> changes{0};
        std::vector<std::thread> writers;
        for (int i = 0; i < 3; ++i) {
          writers.emplace_back([&, i] {
            Random random(seed * 100 + static_cast<uint64_t>(i));
            Database& node = cluster->database(i % nodes());
            while (!stop.load()) {
              if (pause.load()) {
                SleepForNanos(100'000);
                continue;
              }
              const Status changed = ChangePeople(node, random, kKeys);
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
        const Status made = CreateIndex(cluster->nodes(), by_city);
        EXPECT_TRUE(made.ok()) << made;
        // Rows collide at first, because nothing prevents it. If they always do, the writers pause.
        constexpr int kTimesWithWriters = 50;
        SecondaryIndexOptions by_mail = ByMail();
        by_mail.index = kind;
        Status unique = CreateIndex(cluster->nodes(), by_mail);
        for (int i = 0; absl::IsAlreadyExists(unique) && i < 200; ++i) {
          EXPECT_THAT(Message(unique), HasSubstr("index 'by_mail' of table 'people', key ("));
          if (i >= kTimesWithWriters) pause.store(true);
          Database& database = cluster->database(i % nodes());
          for (uint64_t key = 0; key < kKeys; ++key) {
            const Status removed = database.Run([&](auto& t) { return t.Remove(*database.FindTable("people"), key); });
            EXPECT_TRUE(removed.ok() || absl::IsNotFound(removed)) << removed;
          }
          unique = CreateIndex(cluster->nodes(), by_mail);
        }
        pause.store(false);
        EXPECT_TRUE(unique.ok()) << unique;
        for (int i = 0; i < 6; ++i) {
          const Status same = ComparePeople(cluster->database(i % nodes()));
          EXPECT_TRUE(same.ok()) << same;
          wait_for_changes(10);
        }
        stop.store(true);
        for (std::thread& writer : writers) writer.join();
        ExpectSameOnAll(*cluster);
      }
      const auto cluster = OpenAfterCrash(disk, nodes(), seed);
      EXPECT_TRUE(IsCompleteOnAll(*cluster, "by_city"));
      EXPECT_TRUE(IsCompleteOnAll(*cluster, "by_mail"));
      ExpectSameOnAll(*cluster);
    }
  }
}

// The limit is one for all that it waits for, also after an error.
TEST(SecondaryBuildTimeTest, ItWaitsNoLongerThanItsCallerAllows) {
  constexpr absl::Duration kWait = absl::Milliseconds(100);
  for (const int nodes : {1, 2}) {
    SimulatedCluster cluster(nodes, {.seed = 1}, {}, {People()});
    Databases databases;
    for (int node = 0; node < nodes; ++node) databases.push_back(&cluster.database(node));
    SecondaryIndexOptions by_mail = ByMail();
    by_mail.wait_for_transactions = kWait;
    cluster.On(0, [&](Session& session) {
      for (const char* which : {"the first build", "a build after one that failed"}) {
        Status made;
        const uint64_t start = NowNanos();
        const Status ran = session.RunBlocking([&](Transaction&) -> coro::Task<Status> {
          made = CreateIndex(databases, by_mail);  // it waits for the transaction in which it is called
          co_return absl::OkStatus();
        });
        EXPECT_TRUE(ran.ok()) << ran;
        EXPECT_TRUE(absl::IsDeadlineExceeded(made)) << made;
        EXPECT_LT(absl::Nanoseconds(NowNanos() - start), 1.5 * kWait) << which << " on " << nodes << " nodes";
      }
      const Status made = CreateIndex(databases, by_mail);
      EXPECT_TRUE(made.ok()) << made;
    });
  }
}

// --- Several nodes ---

// Nodes without rows make it, too. One that comes back compares it with that of the others, also if it is complete.
TEST(SecondaryBuildOnNodesTest, ClientNodesTakePart) {
  NodesWithClient nodes;
  for (Database* const node : nodes.all()) ASSERT_TRUE(node->CreateTable(SpreadPeople()).ok());
  ASSERT_TRUE(nodes.Start().ok());
  for (uint64_t key = 0; key < 30; ++key) {
    ASSERT_TRUE(PutPerson(nodes.client(), key, MakePerson(key == 29 ? "p1" : MailOfKey(key), 1)).ok());
  }
  EXPECT_TRUE(absl::IsAlreadyExists(CreateIndex(nodes.all(), ByMail())));
  ASSERT_TRUE(PutPerson(*nodes.all()[0], 29, MakePerson("p29", 1)).ok());
  const Status made = CreateIndex(nodes.all(), ByMail());
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
TEST(SecondaryBuildOnNodesTest, AClientDoesNotTakeAnIncompleteIndexForACompleteOne) {
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
  EXPECT_TRUE(absl::IsAlreadyExists(CreateIndex(nodes, ByMail())));
  client.reset();
  client = open(1);
  ASSERT_TRUE(client->CreateIndex(ByMail()).ok());
  const Status refused = client->Start();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(Message(refused), HasSubstr("or in whether that is complete"));
}

}  // namespace secondary_build_test
}  // namespace gannet::txn
