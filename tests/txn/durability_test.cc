// The content of a database that is opened again.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "index/index.h"
#include "log/format/segment_format.h"
#include "tests/txn/durable_cluster.h"
#include "tests/txn/size_changes.h"
#include "tests/txn/worker_history.h"
#include "txn/bulk_loader.h"

namespace gannet::txn {
namespace durability_test {

TEST(DurabilityTest, ClosingAndOpeningShowsTheSame) {
  const Disk disk = NewDisk();
  std::vector<TableOptions> tables = HistoryTables();
  tables.push_back({.name = "names",
                    .key_kind = index::KeyKind::kBytes,
                    .max_key_bytes = 40,
                    .index = IndexKind::kXStore,
                    .payload_bytes = 3000,
                    .variable_length = true});
  const std::string large(2500, 'x');
  for (int run = 0; run < 4; ++run) {
    auto cluster = DurableCluster::Open(disk, tables);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    Database& database = (*cluster)->database();
    const uint64_t before = ExpectPrefix(ReadState(database, 0), 9, 0, 0);
    EXPECT_EQ(before, static_cast<uint64_t>(run) * 100);
    const Table& names = *database.FindTable("names");
    if (run > 0) {
      std::string read(2500, ' ');
      const Status status = database.Run([&](BlockingTransaction& t) {
        return t.Get(names, Key("the one that grew"), std::as_writable_bytes(std::span(read)));
      });
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_EQ(read, large);
    } else {
      ASSERT_TRUE(database
                      .Run([&](BlockingTransaction& t) {
                        return t.Insert(names, Key("the one that grew"), std::as_bytes(std::span("small", 5)));
                      })
                      .ok());
      ASSERT_TRUE(database
                      .Run([&](BlockingTransaction& t) -> Status {
                        std::array<std::byte, 5> small;
                        auto handle = t.transaction().GetForUpdate(names, Key("the one that grew"), small);
                        if (!handle.value().ok()) return handle.value().status();
                        return t.transaction().Update(*handle.value(), std::as_bytes(std::span(large)));
                      })
                      .ok());
    }
    for (uint64_t n = before + 1; n <= before + 100; ++n) {
      const Status status = RunStep(database, 9, 0, n);
      ASSERT_TRUE(status.ok()) << status;
    }
    for (int i = 0; i < run; ++i) ASSERT_TRUE(database.Checkpoint().ok());
    const Status closed = (*cluster)->Close();
    ASSERT_TRUE(closed.ok()) << closed;
  }
}

TEST(DurabilityTest, AKeyThatComesAndGoesKeepsItsLastState) {
  const Disk disk = NewDisk();
  uint64_t last = 0;
  {
    // All within a few epochs: only the versions order the changes of a key.
    auto cluster = DurableCluster::Open(
        disk, HistoryTables(),
        {.database = {.durability = DurabilityMode::kAsync, .group_commit = absl::Milliseconds(50)}});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    for (last = 1; last < 3000; ++last) ASSERT_TRUE(RunStep((*cluster)->database(), 3, 0, last).ok());
    --last;
    ASSERT_TRUE((*cluster)->Close().ok());
  }
  auto cluster = DurableCluster::Open(disk, HistoryTables());
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(ExpectPrefix(ReadState((*cluster)->database(), 0), 3, 0, last), last);
}

// The log has the installed state, whatever a transaction did to a record before it committed.
TEST(DurabilityTest, RecordsThatGrowAndShrinkInOneTransactionAreRecovered) {
  for (const int nodes : {1, 2}) {
    const Disk disk = NewDisk();
    std::vector<TableOptions> tables;
    for (const auto& placement : {Placement::OnFirstNode(), Placement::ByHash()}) {
      tables.push_back({.name = "names" + std::to_string(tables.size()),
                        .key_kind = index::KeyKind::kBytes,
                        .max_key_bytes = 40,
                        .index = IndexKind::kXStore,
                        .payload_bytes = 20'000,
                        .variable_length = true,
                        .placement = placement});
    }
    std::vector<SizeChanges> changes(tables.size(), SizeChanges(5, 20'000));
    for (int run = 0; run < 3 && !testing::Test::HasFatalFailure(); ++run) {
      auto cluster = DurableCluster::Open(disk, tables, {.nodes = nodes});
      ASSERT_TRUE(cluster.ok()) << cluster.status();
      auto session = (*cluster)->database(nodes - 1).OpenSession();
      ASSERT_TRUE(session.ok()) << session.status();
      for (size_t i = 0; i < tables.size(); ++i) {
        const Table& table = (*cluster)->table(tables[i].name, nodes - 1);
        changes[i].Expect(**session, table);
        for (int k = 0; k < 20 && !testing::Test::HasFatalFailure(); ++k) changes[i].Change(**session, table, 1 + k);
      }
      session->reset();
      ASSERT_TRUE((*cluster)->Close().ok());
    }
  }
}

// The refusal comes with the change that is too much, not at the commit, and the transaction goes on without that
// change. A transaction that fits is committed, over several nodes too.
TEST(DurabilityTest, AChangeThatTheLogDoesNotTakeIsRefusedAtOnce) {
  for (const int nodes : {1, 2}) {
    const Disk disk = NewDisk();
    const DurableOptions options{.nodes = nodes, .database = {.log_large_buffer_bytes = size_t{2} << 20}};
    auto cluster = DurableCluster::Open(disk, {OrderedTable("rows", Placement::ByHash())}, options);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    Database& database = (*cluster)->database();
    const Table& table = (*cluster)->table("rows");
    const size_t most = options.database.log_large_buffer_bytes;
    const uint64_t fitting = (most - 96) / (18 + 2 * sizeof(uint64_t));
    const Status half = database.Run([&](BlockingTransaction& t) -> Status {
      for (uint64_t i = 0; i < fitting; ++i) GANNET_RETURN_IF_ERROR(t.Insert(table, i, i));
      const Status refused = t.Insert(table, fitting, fitting);
      EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
      EXPECT_NE(refused.message().find("DatabaseOptions::log_large_buffer_bytes"), absl::string_view::npos) << refused;
      // The refused row is not there, and the others are.
      if (nodes == 1) {
        EXPECT_TRUE(absl::IsResourceExhausted(t.Upsert(table, fitting, fitting)));
        EXPECT_FALSE(t.Exists(table, fitting).value());
        EXPECT_TRUE(t.Validate().ok());
      }
      uint64_t last = 0;
      GANNET_RETURN_IF_ERROR(t.Get(table, fitting - 1, &last));
      EXPECT_EQ(last, fitting - 1);
      // Without half of them there is room for as many.
      for (uint64_t i = 0; i < fitting / 2; ++i) GANNET_RETURN_IF_ERROR(t.Remove(table, i));
      for (uint64_t i = 0; i < fitting / 2; ++i) GANNET_RETURN_IF_ERROR(t.Insert(table, fitting + i, i));
      EXPECT_TRUE(absl::IsResourceExhausted(t.Insert(table, 0, uint64_t{0})));
      return absl::OkStatus();
    });
    ASSERT_TRUE(half.ok()) << half;
    const uint64_t first = fitting / 2;
    // Removals and undone changes take less.
    const Status removed = database.Run([&](BlockingTransaction& t) -> Status {
      for (uint64_t i = first; i < first + fitting; ++i) {
        if (Status s = t.Remove(table, i); !s.ok()) return s;
      }
      for (uint64_t i = 0; i < 100; ++i) {
        if (Status s = t.Insert(table, i, i); !s.ok()) return s;
        if (Status s = t.Remove(table, i); !s.ok()) return s;
      }
      return absl::OkStatus();
    });
    ASSERT_TRUE(removed.ok()) << removed;
    ScanRows rows;
    ASSERT_TRUE(database
                    .Run([&](BlockingTransaction& t) {
                      return t.Scan(table, {.from = 0, .to = UINT64_MAX, .limit = 1}, &rows);
                    })
                    .ok());
    EXPECT_TRUE(rows.empty());
  }
}

// By default the log takes far more of one transaction than a writer's buffer can hold.
TEST(DurabilityTest, OneTransactionRemovesHundredsOfThousandsOfKeys) {
  constexpr uint64_t kKeys = 300'000;
  const Disk disk = NewDisk();
  {
    auto cluster = DurableCluster::Open(disk, {HashTable("rows")});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    Database& database = (*cluster)->database();
    const Table& table = (*cluster)->table("rows");
    for (const bool insert : {true, false}) {
      const Status status = database.Run([&](BlockingTransaction& t) -> Status {
        for (uint64_t key = 0; key < kKeys; ++key) {
          GANNET_RETURN_IF_ERROR(insert ? t.Insert(table, key, key) : t.Remove(table, key));
        }
        return absl::OkStatus();
      });
      ASSERT_TRUE(status.ok()) << status;
    }
    ASSERT_TRUE(database.Run([&](BlockingTransaction& t) { return t.Insert(table, kKeys, kKeys); }).ok());
    disk->PowerOff();
  }
  disk->PowerOn();
  auto cluster = DurableCluster::Open(disk, {HashTable("rows")});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ((*cluster)->database().recovery().changes, 2 * kKeys + 1);
  EXPECT_EQ((*cluster)->database().recovery().records, 1u);
  EXPECT_EQ((*cluster)->table("rows").local_index().statistics().keys, 1u);
}

// The changes at another node are more than its log's inbox takes at once.
TEST(DurabilityTest, ALargeTransactionOverTwoNodesWaitsForTheOtherLog) {
  const Disk disk = NewDisk();
  const std::string payload(3000, 'x');
  auto cluster = DurableCluster::Open(disk, {{.name = "blobs", .payload_bytes = payload.size()}}, {.nodes = 2});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const Table& table = (*cluster)->table("blobs", 1);
  const Status status = (*cluster)->database(1).Run([&](BlockingTransaction& t) -> Status {
    for (uint64_t i = 0; i < 650; ++i) {
      if (Status s = t.Insert(table, i, std::as_bytes(std::span(payload))); !s.ok()) return s;
    }
    return absl::OkStatus();
  });
  ASSERT_TRUE(status.ok()) << status;
}

TEST(DurabilityTest, WithoutALogOnlyCloseAndCheckpointsAreDurable) {
  const Disk disk = NewDisk();
  const DurableOptions none{.database = {.durability = DurabilityMode::kNone}};
  {
    auto cluster = DurableCluster::Open(disk, HistoryTables(), none);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    for (uint64_t n = 1; n <= 50; ++n) ASSERT_TRUE(RunStep((*cluster)->database(), 4, 0, n).ok());
    ASSERT_TRUE((*cluster)->Close().ok());
  }
  {
    auto cluster = DurableCluster::Open(disk, HistoryTables(), none);
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    EXPECT_EQ(ExpectPrefix(ReadState((*cluster)->database(), 0), 4, 0, 50), 50u);
    for (uint64_t n = 51; n <= 60; ++n) ASSERT_TRUE(RunStep((*cluster)->database(), 4, 0, n).ok());
    disk->PowerOff();
  }
  disk->PowerOn();
  auto cluster = DurableCluster::Open(disk, HistoryTables(), none);
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(ExpectPrefix(ReadState((*cluster)->database(), 0), 4, 0, 50), 50u);
}

// Without that, a crash would leave a log of changes to rows that are lost.
TEST(DurabilityTest, ChangesAreRefusedUntilALoadIsInACheckpoint) {
  const Disk disk = NewDisk();
  {
    auto cluster = DurableCluster::Open(disk, HistoryTables());
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    Database& database = (*cluster)->database();
    {
      auto session = database.OpenSession();
      ASSERT_TRUE(session.ok());
      BulkLoader loader(session->get(), database.FindTable("rows"));
      for (uint64_t key = 5000; key < 5100; ++key) ASSERT_TRUE(loader.Add(key, key).ok());
      ASSERT_TRUE(loader.Finish().ok());
    }
    EXPECT_TRUE(absl::IsFailedPrecondition(RunStep(database, 6, 0, 1)));
    EXPECT_EQ(ReadState(database, 5).rows.size(), 100u) << "reading is no change";
    ASSERT_TRUE(database.Checkpoint().ok());
    EXPECT_TRUE(RunStep(database, 6, 0, 1).ok());
    disk->PowerOff();
  }
  disk->PowerOn();
  auto cluster = DurableCluster::Open(disk, HistoryTables());
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  EXPECT_EQ(ReadState((*cluster)->database(), 5).rows.size(), 100u);
  ExpectPrefix(ReadState((*cluster)->database(), 0), 6, 0, 1);
}

TEST(DurabilityTest, AnotherSchemaIsRefused) {
  const Disk disk = NewDisk();
  {
    auto cluster = DurableCluster::Open(disk, HistoryTables());
    ASSERT_TRUE(cluster.ok()) << cluster.status();
  }
  std::vector<TableOptions> tables = HistoryTables();
  tables[1].payload_bytes = 16;
  EXPECT_TRUE(absl::IsInvalidArgument(DurableCluster::Open(disk, tables).status()));
  // The database opens with and without a checkpoint that has the rows in the order of its kind.
  tables = HistoryTables();
  const size_t hash = tables[0].index == IndexKind::kHash ? 0 : 1;
  for (const size_t other : {hash, 1 - hash}) {
    tables = HistoryTables();
    tables[other].index = other == hash ? IndexKind::kXStore : IndexKind::kHash;
    const Status kind = DurableCluster::Open(disk, tables).status();
    EXPECT_TRUE(absl::IsInvalidArgument(kind)) << kind;
    for (const std::string& says : {"'" + tables[other].name + "'", std::string("hash"), std::string("xstore")}) {
      EXPECT_THAT(std::string(kind.message()), ::testing::HasSubstr(says));
    }
  }
  tables = HistoryTables();
  tables[hash].placement = Placement::Replicated();
  EXPECT_TRUE(absl::IsInvalidArgument(DurableCluster::Open(disk, tables).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(DurableCluster::Open(disk, HistoryTables(), {.nodes = 2}).status()));
  const Disk of_two = NewDisk();
  ASSERT_TRUE(DurableCluster::Open(of_two, HistoryTables(), {.nodes = 2}).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(DurableCluster::Open(of_two, HistoryTables()).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(DurableCluster::Open(of_two, HistoryTables(), {.nodes = 3}).status()));
}

std::vector<std::string> SegmentsIn(log::FileSystem& files, const std::string& directory) {
  std::vector<std::string> names = *files.List(directory);
  std::erase_if(names, [](const std::string& name) { return !log::SegmentOfName(name).has_value(); });
  return names;
}

// The end may be missing at another node, too: the whole cluster depends on what that node acknowledged.
TEST(DurabilityTest, AnEndOfTheLogThatIsMissingIsRefused) {
  for (const int nodes : {1, 2}) {
    for (const bool clean : {true, false}) {
      const Disk disk = NewDisk();
      uint64_t n = 0;
      const DurableOptions options{.nodes = nodes};
      for (int run = 0; run < 2; ++run) {
        auto cluster = DurableCluster::Open(disk, HistoryTables(), options);
        ASSERT_TRUE(cluster.ok()) << cluster.status();
        // There are so few steps that a run has one segment.
        for (int i = 0; i < 5; ++i) ASSERT_TRUE(RunStep((*cluster)->database(), 4, 0, ++n).ok());
        if (clean) {
          ASSERT_TRUE((*cluster)->Close().ok());
        } else {
          disk->PowerOff();
          cluster->reset();
          disk->PowerOn();
        }
      }
      for (int node = 0; node < nodes; ++node) {
        const std::string directory = nodes == 1 ? "/data" : "/data/node-" + std::to_string(node);
        const std::vector<std::string> segments = SegmentsIn(*disk, directory);
        ASSERT_GE(segments.size(), 2u);
        for (const bool empty : {false, true}) {
          const Disk copy = disk->CrashedCopy(1);
          const std::string path = directory + "/" + segments.back();
          ASSERT_TRUE(copy->Remove(path).ok());
          if (empty) {
            ASSERT_TRUE(copy->Open(path, log::OpenMode::kCreate).ok());
          }
          const std::vector<std::string> before = *copy->List(directory);
          const Status refused = DurableCluster::Open(copy, HistoryTables(), options).status();
          EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
          EXPECT_NE(refused.message().find(path), std::string::npos) << refused;
          EXPECT_EQ(*copy->List(directory), before);
          DurableOptions salvage = options;
          salvage.database.salvage = true;
          auto rest = DurableCluster::Open(copy, HistoryTables(), salvage);
          ASSERT_TRUE(rest.ok()) << rest.status();
          // The rows are of node 0. Salvage takes all that any log has closed.
          const uint64_t left = node == 0 ? n / 2 : n;
          EXPECT_EQ(ReadState((*rest)->database(), 0).counter, left);
          ASSERT_TRUE(RunStep((*rest)->database(), 4, 0, left + 1).ok());
          copy->PowerOff();
          rest->reset();
          copy->PowerOn();
          auto after = DurableCluster::Open(copy, HistoryTables(), options);
          ASSERT_TRUE(after.ok()) << after.status();
          ExpectPrefix(ReadState((*after)->database(), 0), 4, 0, left + 1);
        }
      }
      auto whole = DurableCluster::Open(disk, HistoryTables(), options);
      ASSERT_TRUE(whole.ok()) << whole.status();
      ExpectPrefix(ReadState((*whole)->database(), 0), 4, 0, n);
    }
  }
}

TEST(DurabilityTest, NamesAndNotesThatTheManifestCannotKeepAreRefused) {
  const auto create = [](const std::string& name) {
    auto cluster = DurableCluster::Open(NewDisk(), {HashTable(name)});
    return cluster.status();
  };
  const std::vector<std::string> bad = {"",
                                        "\xff",
                                        "a\xc3",
                                        "\xc0\xaf",
                                        "\xed\xa0\x80",
                                        "\xf5\x80",
                                        "\xf4\x90\x80\x80",
                                        "new\nline",
                                        std::string("nul\0", 4),
                                        "\x7f",
                                        std::string(256, 'x')};
  for (const std::string& name : bad) {
    const Status status = create(name);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << testing::PrintToString(name) << ": " << status;
  }
  for (const std::string& name : {std::string("kl\xc3\xbc\xc3\x9f"), std::string("\xf0\x9f\x90\xa6 gannet"),
                                  std::string("\"quoted\" 'name'"), std::string(255, 'x')}) {
    const Disk disk = NewDisk();
    for (int run = 0; run < 2; ++run) {
      auto cluster = DurableCluster::Open(disk, {HashTable(name)}, {.database = {.application = name + "\n"}});
      EXPECT_TRUE(cluster.ok()) << cluster.status();
    }
  }
  for (const std::string& note : {std::string("\xff"), std::string(5000, 'x')}) {
    const Disk disk = NewDisk();
    EXPECT_TRUE(absl::IsInvalidArgument(
        DurableCluster::Open(disk, {HashTable("t")}, {.database = {.application = note}}).status()));
    EXPECT_TRUE(disk->List("/")->empty());
  }
}

}  // namespace durability_test
}  // namespace gannet::txn
