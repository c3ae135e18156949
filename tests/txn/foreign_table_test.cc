// A table of another database of the process, or of another node, is refused in every access: its number and its
// options are those of a table here, but not its memory.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "index/rectangle.h"
#include "tests/txn/cluster.h"
#include "txn/bulk_loader.h"
#include "txn/database.h"
#include "txn/run/manual_transaction.h"
#include "txn/store/secondary_index.h"

namespace gannet::txn {
namespace foreign_table_test {

struct Row {
  uint64_t group = 0;
  uint64_t number = 0;
};

void ExpectRefused(const Status& status, const std::string& what, const std::string& table) {
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << what << " of " << table << ": " << status;
  EXPECT_NE(status.message().find("'" + table + "' is none of this transaction's database"), std::string::npos)
      << what << ": " << status;
}

// Every call of a transaction with a table and a key.
std::vector<std::pair<std::string, std::function<Status(BlockingTransaction&, const Table&)>>> Accesses() {
  const Key key(uint64_t{1});
  return {
      {"Get",
       [=](BlockingTransaction& t, const Table& table) {
         Row row;
         return t.Get(table, key, &row);
       }},
      {"GetView", [=](BlockingTransaction& t, const Table& table) { return t.GetView(table, key).status(); }},
      {"Exists", [=](BlockingTransaction& t, const Table& table) { return t.Exists(table, key).status(); }},
      {"GetMany",
       [=](BlockingTransaction& t, const Table& table) {
         Row rows[2];
         GetRequest requests[] = {GetRequest::Of(table, key, &rows[0]),
                                  GetRequest::Of(table, Key(uint64_t{2}), &rows[1])};
         return t.GetMany(requests);
       }},
      {"GetForUpdate",
       [=](BlockingTransaction& t, const Table& table) {
         Row row;
         return t.GetForUpdate(table, key, &row).status();
       }},
      {"Update", [=](BlockingTransaction& t, const Table& table) { return t.Update(table, key, Row{}); }},
      {"UpdateIf",
       [=](BlockingTransaction& t, const Table& table) { return t.UpdateIf(table, key, Row{}, Row{}).status(); }},
      {"Upsert", [=](BlockingTransaction& t, const Table& table) { return t.Upsert(table, key, Row{}); }},
      {"Insert", [=](BlockingTransaction& t, const Table& table) { return t.Insert(table, Key(uint64_t{99}), Row{}); }},
      {"Add", [=](BlockingTransaction& t, const Table& table) { return t.AddAt<uint64_t>(table, key, 0, 1); }},
      {"Remove", [=](BlockingTransaction& t, const Table& table) { return t.Remove(table, key); }},
      {"Scan",
       [=](BlockingTransaction& t, const Table& table) {
         ScanRows rows;
         return t.Scan(table, {.from = Key(uint64_t{0}), .to = Key(UINT64_MAX)}, &rows);
       }},
      {"Rows",
       [=](BlockingTransaction& t, const Table& table) {
         BlockingCursor cursor = t.Rows(table);
         return cursor.First();
       }},
  };
}

class ForeignTableTest : public testing::Test {
 protected:
  struct Opened {
    std::unique_ptr<Database> database;
    const Table* hash = nullptr;
    const Table* ordered = nullptr;
    const Table* boxes = nullptr;
    const SecondaryIndex* by_group = nullptr;
  };
  static Opened Open() {
    Opened opened;
    auto database = Database::OpenInMemory({.memory_bytes = uint64_t{1} << 27});
    EXPECT_TRUE(database.ok()) << database.status();
    opened.database = *std::move(database);
    const auto create = [&](const std::string& name, IndexKind index) {
      const auto table = opened.database->CreateTable(
          {.name = name,
           .key_kind = index == IndexKind::kCatfish ? index::KeyKind::kBytes : index::KeyKind::kInteger,
           .max_key_bytes = index == IndexKind::kCatfish ? index::RectangleKey::kBytes : index::kIntegerKeyBytes,
           .index = index,
           .payload_bytes = sizeof(Row)});
      EXPECT_TRUE(table.ok()) << table.status();
      return *table;
    };
    opened.hash = create("hash", IndexKind::kHash);
    opened.ordered = create("ordered", IndexKind::kXStore);
    opened.boxes = create("boxes", IndexKind::kCatfish);
    EXPECT_TRUE(opened.database->Start().ok());
    const auto index = opened.database->CreateIndex(
        {.name = "by_group", .table = "ordered", .unique = true, .fields = {IndexField::Of<&Row::group>()}});
    EXPECT_TRUE(index.ok()) << index.status();
    opened.by_group = *index;
    const Status loaded = opened.database->Run([&](BlockingTransaction& t) -> Status {
      for (uint64_t row = 1; row <= 10; ++row) {
        for (const Table* table : {opened.hash, opened.ordered}) {
          GANNET_RETURN_IF_ERROR(t.Insert(*table, Key(row), Row{.group = row, .number = row}));
        }
      }
      return absl::OkStatus();
    });
    EXPECT_TRUE(loaded.ok()) << loaded;
    return opened;
  }
  ManualTransaction Begin() {
    StatusOr<ManualTransaction> begun = here_.database->Begin();
    EXPECT_TRUE(begun.ok()) << begun.status();
    return *std::move(begun);
  }

  Opened here_ = Open();
  Opened other_ = Open();
};

TEST_F(ForeignTableTest, IsRefusedByEveryAccess) {
  for (const auto& [name, access] : Accesses()) {
    for (const auto& [foreign, own] : {std::pair(other_.hash, here_.hash), std::pair(other_.ordered, here_.ordered)}) {
      if (own == here_.hash && (name == "Scan" || name == "Rows")) continue;
      ManualTransaction t = Begin();
      ExpectRefused(access(*t, *foreign), name, own->name());
      const Status with_own = access(*t, *own);  // the transaction goes on
      EXPECT_TRUE(with_own.ok()) << name << ": " << with_own;
    }
  }
  ManualTransaction t = Begin();
  ScanRows rows;
  ExpectRefused(t->Search(*other_.boxes, {.min_x = 0, .min_y = 0, .max_x = 1, .max_y = 1}, &rows), "Search", "boxes");
  ExpectRefused(t->Nearest(*other_.boxes, {.x = 0, .y = 0, .count = 1}, &rows), "Nearest", "boxes");
  const StatusOr<RowBy> by = t->GetBy(*other_.by_group, Key(uint64_t{1}));
  EXPECT_TRUE(absl::IsInvalidArgument(by.status())) << by.status();
  BlockingIndexCursor cursor = t->RowsBy(*other_.by_group);
  EXPECT_TRUE(absl::IsInvalidArgument(cursor.First())) << cursor.status();
}

TEST_F(ForeignTableTest, IsRefusedByALoad) {
  auto session = here_.database->OpenSession();
  ASSERT_TRUE(session.ok()) << session.status();
  BulkLoader loader(session->get(), other_.ordered);
  const Row row;
  ExpectRefused(loader.Add(Key(uint64_t{50}), std::as_bytes(std::span(&row, 1))), "BulkLoader", "ordered");
  EXPECT_FALSE(loader.Finish().ok());
}

// It was this database's.
TEST_F(ForeignTableTest, ATableThatWasDroppedSaysSo) {
  ASSERT_TRUE(here_.database->DropTable("hash").ok());
  Row row;
  const Status read = Begin()->Get(*here_.hash, Key(uint64_t{1}), &row);
  EXPECT_TRUE(absl::IsFailedPrecondition(read)) << read;
  EXPECT_NE(read.message().find("dropped"), std::string::npos) << read;
}

// Each node has objects of its own for the tables of all.
TEST(ForeignTableOfNodesTest, IsRefusedOnTheWayToAnotherNode) {
  for (const IndexKind kind : {IndexKind::kHash, IndexKind::kXStore}) {
    const TableOptions options{
        .name = "rows", .index = kind, .payload_bytes = sizeof(Row), .placement = Placement::ByHash()};
    Cluster cluster({.nodes = 2, .worked_at = {0, 1}}, {options});
    Session& session = cluster.NewSession(0);
    for (const auto& [name, access] : Accesses()) {
      if (kind == IndexKind::kHash && (name == "Scan" || name == "Rows")) continue;
      Step step(session);
      ExpectRefused(access(*step.operator->(), cluster.table(1, "rows")), name, "rows");
    }
  }
}

}  // namespace foreign_table_test
}  // namespace gannet::txn
