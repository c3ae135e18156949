// Transactions, bulk loads and recovery on a kind of index that the engine does not know: it asks the registry.
#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "index/registry.h"
#include "tests/index/sorted_array.h"
#include "tests/txn/cluster.h"
#include "tests/txn/durable_cluster.h"
#include "txn/bulk_loader.h"

namespace gannet::txn {
namespace index_kind_test {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(IndexRegistryTest, KnowsEachKindByNumberAndName) {
  const IndexKind toy = index::SortedArrayKind();
  EXPECT_EQ(index::EntryOf(toy).name, "sorted_array");
  EXPECT_THAT(index::IndexKindNames(),
              ElementsAre("hash", "xstore", "catfish", "blink", "rolex", "dex", "dolphin", "sorted_array"));
  // Numbers and names that are stored.
  EXPECT_EQ(static_cast<int>(IndexKind::kHash), 0);
  EXPECT_EQ(static_cast<int>(IndexKind::kXStore), 1);
  EXPECT_EQ(static_cast<int>(IndexKind::kCatfish), 2);
  EXPECT_EQ(static_cast<int>(IndexKind::kBlink), 3);
  EXPECT_EQ(static_cast<int>(IndexKind::kRolex), 4);
  EXPECT_EQ(static_cast<int>(IndexKind::kDex), 5);
  EXPECT_EQ(static_cast<int>(IndexKind::kDolphin), 6);
  for (const IndexKind kind : {IndexKind::kHash, IndexKind::kXStore, IndexKind::kCatfish, IndexKind::kBlink,
                               IndexKind::kRolex, IndexKind::kDex, IndexKind::kDolphin, toy}) {
    EXPECT_EQ(*index::IndexKindOf(index::EntryOf(kind).name), kind);
    EXPECT_EQ(index::FindIndexKind(index::EntryOf(kind).name), &index::EntryOf(kind));
  }
  EXPECT_EQ(index::FindIndexKind(static_cast<IndexKind>(static_cast<int>(toy) + 1)), nullptr);
  const Status unknown = index::IndexKindOf("tree").status();
  EXPECT_TRUE(absl::IsInvalidArgument(unknown));
  EXPECT_THAT(std::string(unknown.message()),
              HasSubstr("hash, xstore, catfish, blink, rolex, dex, dolphin, sorted_array"));
}

TEST(IndexRegistryTest, RefusesATakenNameAndAnEntryWithoutFunctions) {
  EXPECT_TRUE(absl::IsAlreadyExists(index::RegisterIndexKind(index::EntryOf(IndexKind::kHash)).status()));
  index::IndexKindEntry half = index::EntryOf(IndexKind::kHash);
  half.name = "half";
  half.connect = nullptr;
  EXPECT_TRUE(absl::IsInvalidArgument(index::RegisterIndexKind(half).status()));
  EXPECT_EQ(index::FindIndexKind("half"), nullptr);
}

TableOptions ToyTable() {
  return {.name = "rows", .index = index::SortedArrayKind(), .payload_bytes = sizeof(uint64_t)};
}

// Keys and values of a scan over [from, to].
std::vector<std::pair<uint64_t, uint64_t>> RowsIn(BlockingTransaction& t, const Table& table, uint64_t from,
                                                  uint64_t to) {
  std::vector<std::pair<uint64_t, uint64_t>> found;
  ScanRows rows;
  const Status status = t.Scan(table, {.from = from, .to = to}, &rows);
  EXPECT_TRUE(status.ok()) << status;
  for (size_t i = 0; i < rows.size(); ++i) found.emplace_back(rows.key(i).integer(), rows.As<uint64_t>(i));
  return found;
}

TEST(IndexKindTest, RunsTransactions) {
  Cluster cluster({}, {ToyTable()});
  Session& session = cluster.NewSession(0);
  const Table& table = cluster.table(0, "rows");
  EXPECT_EQ(cluster.databases[0]->table_statistics()[0].index_kind, "sorted_array");
  const auto run = [&](auto body) {
    const Status status = RunBlockingBody(session, body);
    ASSERT_TRUE(status.ok()) << status;
  };
  run([&](BlockingTransaction& t) {
    for (uint64_t key = 0; key < 100; ++key) GANNET_RETURN_IF_ERROR(t.Insert(table, key, 10 * key));
    return absl::OkStatus();
  });
  run([&](BlockingTransaction& t) {
    GANNET_RETURN_IF_ERROR(t.Update(table, 7, uint64_t{7}));
    return t.Remove(table, 8);
  });
  run([&](BlockingTransaction& t) {
    EXPECT_THAT(RowsIn(t, table, 6, 9), ElementsAre(testing::Pair(6, 60), testing::Pair(7, 7), testing::Pair(9, 90)));
    uint64_t value = 0;
    EXPECT_TRUE(absl::IsNotFound(t.Get(table, 8, &value)));
    return t.Get(table, 7, &value);
  });
  EXPECT_EQ(table.local_index().statistics().keys, 99u);
}

// The witness of a miss and that of a scan.
TEST(IndexKindTest, ForeignInsertsAreConflicts) {
  Cluster cluster({}, {ToyTable(), {.name = "other", .payload_bytes = sizeof(uint64_t)}});
  Session& reader = cluster.NewSession(0);
  Session& writer = cluster.NewSession(0);
  const Table& table = cluster.table(0, "rows");
  for (const bool scans : {false, true}) {
    const uint64_t key = scans ? 1 : 0;
    Step step(reader);
    if (scans) {
      EXPECT_EQ(RowsIn(*step.operator->(), table, 0, 9).size(), 1u);
    } else {
      uint64_t value = 0;
      EXPECT_TRUE(absl::IsNotFound(step->Get(table, key, &value)));
    }
    ASSERT_TRUE(step->Insert(cluster.table(0, "other"), key, uint64_t{1}).ok());
    const Status inserted =
        RunBlockingBody(writer, [&](BlockingTransaction& t) { return t.Insert(table, key, uint64_t{5}); });
    ASSERT_TRUE(inserted.ok()) << inserted;
    EXPECT_TRUE(absl::IsAborted(step.Commit()));
  }
}

// A commit whose own insert moves keys from one version word to another carries its witnesses along: it goes through,
// and a foreign insert among the moved keys, which comes between the own insert and the validation, is a conflict.
struct CarryCase {
  const char* name;
  bool by_call;             // the transaction runs at another node than that of the rows
  bool makes_a_region;      // the keys move to a version word that the insert creates, not to one that was there
  bool has_many_witnesses;  // which are carried another way
};

class CarriesWitnessesTest : public testing::TestWithParam<CarryCase> {};

TEST_P(CarriesWitnessesTest, OverAnInsertThatMovesKeys) {
  const CarryCase& how = GetParam();
  for (const bool foreign : {false, true}) {
    Cluster cluster({.nodes = how.by_call ? 2 : 1, .read_path = ReadPathPolicy::kCall}, {ToyTable()});
    Session& owner = cluster.NewSession(0);
    const auto insert = [&](uint64_t key) {
      const Status inserted =
          RunBlockingBody(owner, [&](BlockingTransaction& t) { return t.Insert(cluster.table(0, "rows"), key, key); });
      EXPECT_TRUE(inserted.ok()) << inserted;
    };
    // The ninth key makes a second region, which begins at 40. Then the first is filled, and possibly the second.
    for (uint64_t key = 0; key <= 80; key += 10) insert(key);
    for (uint64_t key = 1; key <= 4; ++key) insert(key);
    for (uint64_t key = 81; key <= 83 && how.makes_a_region; ++key) insert(key);

    // One more key in the first region moves 20 and 30 to the second; or, if that is full, 60 and more to a third.
    const uint64_t moves = how.makes_a_region ? 70 : 30;
    const int writer = how.by_call ? 1 : 0;
    const Table& table = cluster.table(writer, "rows");
    Session& session = cluster.NewSession(writer);
    Step step(session);
    EXPECT_THAT(RowsIn(*step.operator->(), table, moves - 5, moves + 5), ElementsAre(testing::Pair(moves, moves)));
    for (int i = 0; i < 100 && how.has_many_witnesses; ++i) {
      uint64_t value = 0;
      ASSERT_TRUE(absl::IsNotFound(step->Get(table, moves - 1, &value)));
    }
    for (const uint64_t key : {5, 6}) ASSERT_TRUE(step->Insert(table, key, key).ok());
    if (foreign) index::ActAfterNextInsert([&] { insert(moves + 3); });
    const Status committed = step.Commit();
    EXPECT_EQ(committed.code(), foreign ? absl::StatusCode::kAborted : absl::StatusCode::kOk) << committed;
    EXPECT_EQ(cluster.table(0, "rows").local_index().statistics().nodes, how.makes_a_region ? 3u : 2u);
  }
}

INSTANTIATE_TEST_SUITE_P(
    IndexKind, CarriesWitnessesTest,
    testing::Values(CarryCase{"local", false, false, false}, CarryCase{"local_created", false, true, false},
                    CarryCase{"local_many", false, false, true}, CarryCase{"local_created_many", false, true, true},
                    CarryCase{"by_call", true, false, false}, CarryCase{"by_call_created", true, true, false},
                    CarryCase{"by_call_many", true, false, true}, CarryCase{"by_call_created_many", true, true, true}),
    [](const auto& each) { return std::string(each.param.name); });

TEST(IndexKindTest, IsLoadedAndRecovered) {
  auto disk = std::make_shared<log::FaultyFileSystem>(1);
  {
    auto cluster = DurableCluster::Open(disk, {ToyTable()});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    const Table& table = (*cluster)->table("rows");
    auto session = (*cluster)->database().OpenSession();
    ASSERT_TRUE(session.ok()) << session.status();
    {
      BulkLoader loader(session->get(), &table);
      for (uint64_t key = 0; key < 200; ++key) ASSERT_TRUE(loader.Add(key, std::as_bytes(std::span(&key, 1))).ok());
      const uint64_t behind = 5;
      EXPECT_TRUE(absl::IsInvalidArgument(loader.Add(behind, std::as_bytes(std::span(&behind, 1)))));
      EXPECT_TRUE(absl::IsInvalidArgument(loader.Finish()));
      EXPECT_EQ(table.local_index().statistics().keys, 0u);
    }
    {
      BulkLoader loader(session->get(), &table);
      for (uint64_t key = 0; key < 200; ++key) ASSERT_TRUE(loader.Add(key, std::as_bytes(std::span(&key, 1))).ok());
      ASSERT_TRUE(loader.Finish().ok());
    }
    ASSERT_TRUE((*cluster)->database().Checkpoint().ok());
    const Status changed = RunBlockingBody(**session, [&](BlockingTransaction& t) {
      GANNET_RETURN_IF_ERROR(t.Remove(table, 3));
      return t.Update(table, 4, uint64_t{44});
    });
    ASSERT_TRUE(changed.ok()) << changed;
    session->reset();
    ASSERT_TRUE((*cluster)->Close().ok());
  }
  auto cluster = DurableCluster::Open(disk, {ToyTable()});
  ASSERT_TRUE(cluster.ok()) << cluster.status();
  const Table& table = (*cluster)->table("rows");
  EXPECT_EQ(table.local_index().statistics().keys, 199u);
  auto session = (*cluster)->database().OpenSession();
  ASSERT_TRUE(session.ok()) << session.status();
  const Status read = RunBlockingBody(**session, [&](BlockingTransaction& t) {
    EXPECT_THAT(RowsIn(t, table, 2, 5), ElementsAre(testing::Pair(2, 2), testing::Pair(4, 44), testing::Pair(5, 5)));
    return absl::OkStatus();
  });
  EXPECT_TRUE(read.ok()) << read;
}

// The manifest names the kind: a table that is opened with another one is refused.
TEST(IndexKindTest, OfAManifestIsKept) {
  auto disk = std::make_shared<log::FaultyFileSystem>(1);
  ASSERT_TRUE(DurableCluster::Open(disk, {ToyTable()}).ok());
  const Status other = DurableCluster::Open(disk, {OrderedTable("rows")}).status();
  EXPECT_THAT(std::string(other.message()), HasSubstr("one with index sorted_array, and the program creates"));
}

}  // namespace index_kind_test
}  // namespace gannet::txn
