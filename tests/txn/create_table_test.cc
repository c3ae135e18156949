// Tables are created and renamed while transactions run, on one node and on several. What all changes of tables have in
// common is in schema_change_test.cc.
#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/random.h"
#include "base/thread.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "log/manifest/manifest.h"
#include "tests/txn/catalog_helpers.h"
#include "tests/txn/disk_image.h"
#include "tests/txn/schema_helpers.h"
#include "tests/txn/table_kinds.h"
#include "txn/bulk_loader.h"
#include "txn/durable/data_directory.h"
#include "txn/run/database_state.h"
#include "txn/run/session.h"

namespace gannet::txn {
namespace create_table_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CreateTableTest : public NodesTest {};
INSTANTIATE_TEST_SUITE_P(, CreateTableTest, testing::Values(1, kNodes), NameOfNodes);

// Sessions that were open before use the new tables, from every node, with all kinds of index; one in a transaction
// that began before the table was there.
TEST_P(CreateTableTest, OpenSessionsUseIt) {
  constexpr size_t kPayload = 40;
  constexpr uint64_t kMany = 60;
  const auto number = static_cast<uint64_t>(nodes());
  const std::array<std::byte, kPayload> payload{};
  std::vector<Way> ways = WaysOf(nodes());
  if (nodes() > 1) ways.emplace_back();
  const std::vector<TableOptions> kinds = SpreadKinds(kPayload, /*variable_length=*/true);
  for (const Way& way : ways) {
    for (const Disk& disk : {NewDisk(), Disk()}) {
      if (disk == nullptr && nodes() > 1) continue;
      {
        const auto cluster = OpenNodes(disk, nodes(), {}, way.Options());
        std::vector<std::unique_ptr<Session>> sessions = OpenSessions(*cluster);
        EXPECT_THAT(NamesOnAll(*cluster), ElementsAre());
        for (const TableOptions& options : kinds) {
          SCOPED_TRACE(testing::Message() << options.name << ", " << way);
          const auto put = [&](Transaction& t, uint64_t n, uint64_t at) {
            const index::OwnedKey key = KeyOf(options, n);
            const Table& table = cluster->table(options.name, static_cast<int>(at));
            return t.Insert(table, key.view(), std::span(payload).first(n % kPayload));
          };
          bool created = false;
          const Status first = sessions[0]->RunBlocking([&](Transaction& t) -> coro::Task<Status> {
            if (!created) {
              const Status done = Create(cluster->nodes(), options);
              if (!done.ok()) co_return done;
              created = true;
            }
            for (uint64_t n = 0; n < kMany; n += number) GANNET_CO_RETURN_IF_ERROR(put(t, n, 0));
            co_return absl::OkStatus();
          });
          ASSERT_TRUE(first.ok()) << first;
          EXPECT_TRUE(absl::IsAlreadyExists(Create(cluster->nodes(), options)));
          for (uint64_t n = 0; n < kMany; ++n) {
            const uint64_t at = n % number;
            if (at == 0) continue;
            const Status done =
                sessions[at]->RunBlocking([&](Transaction& t) -> coro::Task<Status> { co_return put(t, n, at); });
            ASSERT_TRUE(done.ok()) << done;
          }
          for (uint64_t at = 0; at < number; ++at) {
            const Table& table = cluster->table(options.name, static_cast<int>(at));
            const Status read = sessions[at]->RunBlocking([&](Transaction& t) -> coro::Task<Status> {
              for (uint64_t n = 0; n < kMany; ++n) {
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
        for (const bool sessions_open : {true, false}) {
          if (!sessions_open) sessions.clear();
          for (const TableOptions& options : kinds) {
            EXPECT_EQ(KeysOnAll(*cluster, options.name), kMany) << options.name;
            if (nodes() > 1) continue;  // an owner learns later of rows that others have inserted by verbs
            for (const TableStatistics& one : cluster->database().table_statistics()) {
              if (one.table == options.name) {
                EXPECT_GE(one.record_bytes, kMany * 64) << options.name;
              }
            }
          }
        }
      }
      if (disk == nullptr) continue;
      const auto cluster = OpenNodes(disk, nodes(), kinds);
      for (const TableOptions& options : kinds) EXPECT_EQ(KeysOnAll(*cluster, options.name), kMany) << options.name;
    }
  }
}

// A program that does not know the new table opens the directory, keeps the table, and may create it later.
TEST_P(CreateTableTest, AProgramThatLacksItOpens) {
  const Disk disk = NewDisk();
  {
    const auto cluster = OpenNodes(disk, nodes(), {Spread("a")});
    ASSERT_TRUE(Create(cluster->nodes(), Spread("b")).ok());
    PutRows(*cluster, "b", 100);
  }
  const auto cluster = OpenNodes(disk, nodes(), {Spread("a")});
  EXPECT_THAT(NamesOnAll(*cluster), ElementsAre("a", "b"));
  const uint64_t generation = ManifestOf(*disk, 0, nodes()).catalog_generation;
  const Status other = Create(cluster->nodes(), SpreadOrdered("b"));
  EXPECT_TRUE(absl::IsInvalidArgument(other)) << other;
  const Status known = Create(cluster->nodes(), Spread("b"));
  EXPECT_TRUE(known.ok()) << known;
  EXPECT_TRUE(absl::IsAlreadyExists(Create(cluster->nodes(), Spread("b"))));
  EXPECT_EQ(ManifestOf(*disk, 0, nodes()).catalog_generation, generation) << "nothing has changed";
  ExpectRows(*cluster, "b", 100);
}

TEST_P(CreateTableTest, AWrongTableIsRefused) {
  const auto cluster = OpenNodes(NewDisk(), nodes());
  TableOptions wrong = Spread("a");
  wrong.payload_bytes = kMaxPayloadBytes + 1;
  EXPECT_TRUE(absl::IsInvalidArgument(Create(cluster->nodes(), wrong)));
  wrong = Spread("a");
  wrong.placement = Placement::Unknown();
  EXPECT_TRUE(absl::IsInvalidArgument(Create(cluster->nodes(), wrong)));
  wrong = Spread("a");
  wrong.expected_rows = uint64_t{1} << 30;
  const Status too_large = Create(cluster->nodes(), wrong);
  EXPECT_TRUE(absl::IsResourceExhausted(too_large)) << too_large;
  EXPECT_EQ(Message(too_large).starts_with("node 0: "), nodes() > 1) << too_large;
  EXPECT_THAT(NamesOnAll(*cluster), ElementsAre());
  ASSERT_TRUE(Create(cluster->nodes(), Spread("a")).ok());
  PutRows(*cluster, "a", 100);
  ExpectRows(*cluster, "a", 100);
}

// The manifest of the last node cannot be written. The numbers of the tables are used up, their memory is not.
TEST_P(CreateTableTest, ThoseThatAreNotMadeTakeNoMemory) {
  const Disk disk = NewDisk();
  const auto cluster = OpenNodes(disk, nodes(), {Spread("a")});
  FailWrites(*disk, PathOfManifest(last(), nodes()));
  uint64_t taken = 0;
  for (int i = 0; i < 4; ++i) {
    const Status created = Create(cluster->nodes(), SpreadOrdered("new"));
    EXPECT_TRUE(absl::IsDataLoss(created)) << created;
    EXPECT_THAT(Message(created), HasSubstr("when a table is created: "));
    if (i == 0) taken = TakenBytes(cluster->database(last()));
    EXPECT_EQ(TakenBytes(cluster->database(last())), taken);
  }
  disk->Heal();
  ASSERT_TRUE(Create(cluster->nodes(), Spread("new")).ok());
  EXPECT_EQ(cluster->table("new", last()).id(), 5);
  EXPECT_THAT(NamesOnAll(*cluster), ElementsAre("a", "new"));
}

TEST_P(CreateTableTest, ALoadOfItIsDurableByACheckpoint) {
  constexpr uint64_t kMany = 50;
  const Disk disk = NewDisk();
  {
    const auto cluster = OpenNodes(disk, nodes(), {HashTable("a")});
    ASSERT_TRUE(Create(cluster->nodes(), OrderedTable("loaded")).ok());
    {
      const auto session = cluster->database().OpenSession();
      BulkLoader loader(session->get(), &cluster->table("loaded"));
      for (uint64_t key = 0; key < kMany; ++key) ASSERT_TRUE(loader.Add(key, key).ok());
      ASSERT_TRUE(loader.Finish().ok());
    }
    ASSERT_TRUE(cluster->database().Checkpoint().ok());
  }
  const auto cluster = OpenNodes(disk, nodes());
  for (uint64_t key = 0; key < kMany; ++key) EXPECT_EQ(Get(*cluster, "loaded", key, last()).value(), key);
}

TEST_P(CreateTableTest, ATableIsRenamed) {
  const Disk disk = NewDisk();
  {
    const auto cluster = OpenNodes(disk, nodes(), {Spread("a"), Spread("b")});
    PutRows(*cluster, "a", 100);
    const Table* const table = cluster->database(last()).FindTable("a");
    const std::string& old_name = table->name();
    EXPECT_TRUE(absl::IsAlreadyExists(Rename(cluster->nodes(), "a", "b")));
    EXPECT_TRUE(absl::IsInvalidArgument(Rename(cluster->nodes(), "a", "")));
    EXPECT_TRUE(absl::IsInvalidArgument(Rename(cluster->nodes(), "a", "\n")));
    EXPECT_EQ(ManifestOf(*disk, 0, nodes()).catalog_generation, 0u) << "a program of before may still open it";
    const Status renamed = Rename(cluster->nodes(), "a", "z");
    ASSERT_TRUE(renamed.ok()) << renamed;
    EXPECT_THAT(NamesOnAll(*cluster), ElementsAre("z", "b"));
    EXPECT_EQ(cluster->database(last()).FindTable("a"), nullptr);
    EXPECT_EQ(cluster->database(last()).FindTable("z"), table);
    EXPECT_EQ(old_name, "a") << "a reference that a reader has stays valid";
    ExpectRows(*cluster, "z", 100);
    EXPECT_THAT(Message(Get(*cluster, "z", 50).status()), HasSubstr("table 'z', key 50"));
    for (int node = 0; node < nodes(); ++node) EXPECT_EQ(ManifestOf(*disk, node, nodes()).tables[0].name, "z");
    PutRows(*cluster, "z", 200);
    // The name is free again, and its number is not.
    ASSERT_TRUE(Create(cluster->nodes(), Spread("a")).ok());
    EXPECT_EQ(cluster->table("a", last()).id(), 2);
    PutRows(*cluster, "a", 500);
    ASSERT_TRUE(Rename(cluster->nodes(), "b", "y").ok());
    ASSERT_TRUE(cluster->database().Checkpoint().ok());
  }
  const auto cluster = OpenNodes(disk, nodes(), {Spread("z"), Spread("new")});
  EXPECT_THAT(NamesOnAll(*cluster), ElementsAre("z", "y", "a", "new"));
  ExpectRows(*cluster, "z", 200);
  ExpectRows(*cluster, "a", 500);
}

// Threads of all nodes insert into the tables that they find, in transactions of several nodes, while tables are
// created and renamed, checkpoints are taken, and copies are made.
TEST_P(CreateTableTest, TransactionsRunMeanwhile) {
  constexpr size_t kThreads = 3;
  constexpr size_t kRowsOfTable = 30;                    // that a thread inserts until there is one more table, at most
  const size_t tables_at_end = nodes() == 1 ? 300 : 60;  // of one node more than one chunk of TableSet
  const Disk disk = NewDisk();
  std::vector<std::vector<std::vector<uint64_t>>> inserted(kThreads);  // by thread and table
  {
    const auto cluster = OpenNodes(disk, nodes(), {Spread("table 0")});
    std::atomic<bool> stop{false};
    std::vector<std::jthread> threads;
    const absl::Cleanup end = [&] { stop.store(true); };
    for (size_t i = 0; i < kThreads; ++i) {
      inserted[i].resize(tables_at_end);
      threads.emplace_back([&, i] {
        Random random(i + 1);
        Database& database = cluster->database(static_cast<int>(i) % nodes());
        const auto session = database.OpenSession();  // before all tables but one are there
        ASSERT_TRUE(session.ok());
        for (uint64_t n = 0; !stop.load();) {
          const std::vector<const Table*> tables = database.tables();
          // So many rows have room, however fast the machine is.
          if (n >= kRowsOfTable * tables.size()) {
            absl::SleepFor(absl::Microseconds(100));
            continue;
          }
          const Table& one = *tables[random.Below(tables.size())];
          const Table& newest = *tables.back();
          const uint64_t key = n++ * kThreads + i;
          const Status done = (*session)->RunBlocking([&](Transaction& t) -> coro::Task<Status> {
            GANNET_CO_RETURN_IF_ERROR(t.Insert(one, key, key));
            co_return &one == &newest ? absl::OkStatus() : t.Insert(newest, key, key);
          });
          ASSERT_TRUE(done.ok()) << done << " " << one.name();
          inserted[i][one.id()].push_back(key);
          if (&one != &newest) inserted[i][newest.id()].push_back(key);
        }
      });
    }
    for (size_t i = 1; i < tables_at_end; ++i) {
      const std::string name = absl::StrCat("new ", i);
      TableOptions table = i % 2 == 0 ? Spread(name) : SpreadOrdered(name);
      table.expected_rows = 10;
      const Status created = Create(cluster->nodes(), table);
      ASSERT_TRUE(created.ok()) << created;
      ASSERT_TRUE(Rename(cluster->nodes(), name, absl::StrCat("table ", i)).ok());
      if (nodes() == 1) {
        EXPECT_EQ(cluster->database().table_statistics().size(), i + 1);
        EXPECT_TRUE(cluster->database().path_statistics().empty());
      }
      if (i % (tables_at_end / 3) != 0) continue;
      ASSERT_TRUE(cluster->database(static_cast<int>(i) % nodes()).Checkpoint().ok());
      if (nodes() == 1) continue;  // copies of so many tables take long
      const std::string copy = absl::StrCat("/copy-", i);
      std::jthread backup([&] {
        const Status copied = cluster->database().Backup(copy);
        EXPECT_TRUE(copied.ok()) << copied;
      });
      EXPECT_TRUE(Rename(cluster->nodes(), "table 0", "table 0 in a backup").ok());
      EXPECT_TRUE(Rename(cluster->nodes(), "table 0 in a backup", "table 0").ok());
      backup.join();
      const auto data = ReadDataDirectory(*disk, copy);
      ASSERT_TRUE(data.ok()) << data.status();
      for (const NodeData& node : *data) {
        EXPECT_EQ(node.manifest.tables.size(), i + 1);
        EXPECT_EQ(node.manifest.tables, data->front().manifest.tables);
      }
    }
  }
  const auto cluster = OpenAfterCrash(disk, nodes());
  EXPECT_EQ(NamesOnAll(*cluster).size(), tables_at_end);
  std::map<std::string, uint64_t> keys;
  for (Database* const node : cluster->nodes()) {
    for (const TableStatistics& statistics : node->table_statistics()) keys[statistics.table] += statistics.index.keys;
  }
  for (size_t id = 0; id < tables_at_end; ++id) {
    const std::string name = absl::StrCat("table ", id);
    size_t expected = 0;
    for (const auto& by_table : inserted) {
      expected += by_table[id].size();
      for (const uint64_t key : by_table[id]) ASSERT_EQ(Get(*cluster, name, key).value(), key) << name;
    }
    EXPECT_EQ(keys[name], expected) << name;
  }
}

// The disk breaks at every operation on a manifest of two changes, one after the other. What was acknowledged, and the
// rows, are there: also those of the new table, which were written between the two.
TEST_P(CreateTableTest, ACrashLeavesWhatWasAcknowledged) {
  const Disk first = NewDisk();
  {
    const auto cluster = OpenNodes(first, nodes(), {Spread("a"), Spread("b")});
    PutRows(*cluster, "a", 100);
    PutRows(*cluster, "b", 300);
  }
  const DiskImage image = ImageOf(*first);
  std::set<std::string> seen;
  for (const bool power_cut : {true, false}) {
    if (!power_cut && nodes() > 1) continue;
    for (uint64_t at = 1;; ++at) {
      SCOPED_TRACE(testing::Message() << (power_cut ? "power cut" : "error") << " at operation " << at);
      const Disk disk = DiskOf(image, at);
      std::atomic<uint64_t> operations{0};
      bool created = false;
      bool put = false;
      bool renamed = false;
      {
        const auto cluster = OpenNodes(disk, nodes(), {}, {.database = {.durable_within = absl::Milliseconds(20)}});
        BreakAtManifest(disk, at, power_cut, &operations);
        created = Create(cluster->nodes(), Spread("c")).ok();
        put = created && Put(*cluster, "c", 2, 2).ok();
        renamed = Rename(cluster->nodes(), "a", "z").ok();
        std::vector<std::string> names = {renamed ? "z" : "a", "b"};
        if (created) names.emplace_back("c");
        EXPECT_EQ(NamesOnAll(*cluster), names);
        disk->SetOptions({});
      }
      if (operations.load() < at) {
        EXPECT_GT(at, static_cast<uint64_t>(6 * nodes()))
            << "two replacements of a file have more operations than that";
        break;
      }
      disk->Heal();
      for (uint64_t seed = 1; seed <= (power_cut && nodes() == 1 ? 8 : 1); ++seed) {
        const auto cluster = OpenNodes(power_cut ? Disk(disk->CrashedCopy(at * 10 + seed)) : disk, nodes());
        const bool has_z = cluster->database().FindTable("z") != nullptr;
        const bool has_c = cluster->database().FindTable("c") != nullptr;
        std::vector<std::string> names = {has_z ? "z" : "a", "b"};
        if (has_c) names.emplace_back("c");
        EXPECT_EQ(NamesOnAll(*cluster), names);
        EXPECT_TRUE(has_z || !renamed);
        EXPECT_TRUE(has_c || !created);
        if (put) {
          EXPECT_EQ(Get(*cluster, "c", 2).value(), 2u);
        }
        ExpectRows(*cluster, has_z ? "z" : "a", 100);
        ExpectRows(*cluster, "b", 300);
        if (power_cut) seen.insert(absl::StrCat(has_c ? "c" : "", has_z ? "z" : ""));  // one error may be of one change
        if (!has_c) {
          ASSERT_TRUE(Create(cluster->nodes(), Spread("c")).ok());
        }
        ASSERT_TRUE(Put(*cluster, "c", 3, 3).ok());
      }
    }
  }
  EXPECT_THAT(seen, ElementsAre("", "c", "cz"));
}

// --- Several nodes ---

// The node that starts first compares its tables with those of the other one later: when it opens a session, or before
// the first change. While a change publishes its tables, node by node, sessions are opened.
TEST(CreateTableOnNodesTest, FirstSessionsAreOpenedWhileTablesChange) {
  for (int round = 0; round < 30; ++round) {
    const auto cluster = OpenNodes(nullptr, 2, {Spread("a")}, {.bytes_per_node = uint64_t{1} << 24});
    const Status created = Create(cluster->nodes(), Spread("b"));
    ASSERT_TRUE(created.ok()) << created;
    const TableSet none;
    for (int other = 0; other < 2; ++other) {
      TableDigests& digests = *cluster->database(other).state().table_digests;
      digests.PublishAgain(none);
      const auto session = cluster->database(1 - other).OpenSession();
      EXPECT_TRUE(session.ok()) << session.status();
      digests.PublishAgain(cluster->database(other).state().tables);
    }
  }
}

// Two tables exchange their names: the union of manifests of which some are behind is no catalog.
TEST(CreateTableOnNodesTest, OneManifestWithExchangedNamesIsEnough) {
  WithManifestsBehind(
      {Spread("a"), Spread("b")},
      [](DurableCluster& cluster) {
        PutRows(cluster, "a", 100);
        ASSERT_TRUE(cluster.database(1).Checkpoint().ok());
        PutRows(cluster, "b", 300);
      },
      [](DurableCluster& cluster) {
        ASSERT_TRUE(Rename(cluster.nodes(), "a", "c").ok());
        ASSERT_TRUE(Rename(cluster.nodes(), "b", "a").ok());
        ASSERT_TRUE(Rename(cluster.nodes(), "c", "b").ok());
      },
      [](DurableCluster& cluster, bool all_behind) {
        EXPECT_THAT(NamesOnAll(cluster), all_behind ? ElementsAre("a", "b") : ElementsAre("b", "a"));
        ExpectRows(cluster, all_behind ? "a" : "b", 100);
        ExpectRows(cluster, all_behind ? "b" : "a", 300);
      });
}

// A start adds tables to manifests of which some are behind, and is interrupted, too.
TEST(CreateTableOnNodesTest, AStartAfterACrashAddsTables) {
  const Disk disk = NewDisk();
  DiskImage before;
  {
    const auto cluster = OpenNodes(disk, kNodes, {Spread("a")});
    PutRows(*cluster, "a", 100);
    before = ImageOf(*disk);
    ASSERT_TRUE(Rename(cluster->nodes(), "a", "z").ok());
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
    const auto cluster = OpenAfterCrash(broken, kNodes, at);
    const std::vector<std::string> names = NamesOnAll(*cluster);
    EXPECT_EQ(names[0], "z");
    EXPECT_TRUE(names.size() == 2 || !opened);
    ExpectRows(*cluster, "z", 100);
    seen.insert(names.size());
  }
  EXPECT_THAT(seen, ElementsAre(1, 2));
}

// The nodes are opened, and the tables change before they start.
TEST(CreateTableOnNodesTest, AChangeAfterOpenIsNoticed) {
  const Disk disk = NewDisk();
  { ASSERT_TRUE(OpenNodes(disk, kNodes, {Spread("a")})->Close().ok()); }
  {
    const auto cluster = OpenNodes(disk, kNodes, {}, {.start = false});
    log::Manifest manifest = ManifestOf(*disk, 2);
    manifest.catalog_generation = 1;
    ASSERT_TRUE(log::WriteManifest(*disk, "/data/node-2", manifest).ok());
    const Status refused = OnAllNodes(cluster->nodes(), [](Database& node) { return node.Start(); });
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_THAT(Message(refused), HasSubstr("open it again"));
  }
  EXPECT_TRUE(Open(disk, {}, kNodes).ok());
}

}  // namespace create_table_test
}  // namespace gannet::txn
