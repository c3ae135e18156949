// Properties that all changes of tables share, on one node and on several: a change is made on all nodes or on none,
// durably, while transactions run. A change that ends early leaves the tables as they were.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/thread.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "log/manifest/manifest.h"
#include "tests/support/thorough.h"
#include "tests/txn/catalog_helpers.h"
#include "tests/txn/disk_image.h"
#include "tests/txn/schema_helpers.h"
#include "txn/run/index_cursor.h"
#include "txn/run/manual_transaction.h"

namespace gannet::txn {
namespace schema_change_test {

using ::testing::AnyOf;
using ::testing::HasSubstr;

enum class Kind : uint8_t { kCreate, kRename, kDrop, kWiden, kArrange, kCreateIndex, kDropIndex };

SecondaryIndexOptions IndexOf(const std::string& table, Placement placement = Placement::ByHash()) {
  return {.name = "index of " + table,
          .table = table,
          .unique = true,
          .fields = {IndexField::Unsigned(0, 8)},
          .placement = std::move(placement),
          .wait_for_transactions = absl::Seconds(20)};
}

// Lists the tables of a node, with the sizes of their rows, or with whether an index is complete.
std::string TablesOf(const Database& database) {
  std::vector<std::string> tables;
  for (const Table* const table : database.tables()) {
    const SecondaryIndex* const index = database.FindIndex(table->name());
    tables.push_back(index == nullptr       ? absl::StrCat(table->name(), ":", table->payload_bytes())
                     : index->is_complete() ? absl::StrCat(table->name(), ":complete")
                                            : absl::StrCat(table->name(), ":incomplete"));
  }
  return absl::StrJoin(tables, ", ");
}
std::string TablesOnAll(DurableCluster& cluster) {
  return OnAll(cluster, TablesOf);
}

// One kind of change of table "a", next to which there is a table "b".
struct Operation {
  std::string name;
  Kind kind;
  std::string after;          // what TablesOf returns after the change
  std::string says = {};      // how an error of a manifest names it; empty: it changes no manifest
  std::string instead = {};   // what several nodes use instead
  std::string not_done = {};  // what it says if it waited too long; empty: it waits for no transaction
  std::string before = "b:8, a:8";
  std::string between = before;                 // what an error or a crash may leave, too
  int manifests = 1;                            // times that each manifest changes
  Table::State waits_as = Table::State::kUsed;  // the state of the table while it waits
  int nodes = 1;
  Placement placement = Placement::ByHash();

  Status Change(const Databases& all, const std::string& table) const;
  bool drops() const { return kind == Kind::kDrop || kind == Kind::kDropIndex; }
  // The result of a second call of Change.
  absl::StatusCode Twice() const;
  // Creates, before Start, the tables of a program that knows those before the change, or those after it.
  void CreateTables(Database& database, bool of_after) const;
  // Opens nodes with the tables before the change.
  std::unique_ptr<DurableCluster> Open(const Disk& disk, DurableOptions options = {}) const;

  friend std::ostream& operator<<(std::ostream& out, const Operation& operation) { return out << operation.name; }
};

Status Operation::Change(const Databases& all, const std::string& table) const {
  switch (kind) {
    case Kind::kCreate: {
      TableOptions options = Spread("new " + table);
      options.placement = placement;
      return Create(all, options);
    }
    case Kind::kRename:
      return Rename(all, table, "renamed " + table);
    case Kind::kDrop:
      return Drop(all, table);
    case Kind::kWiden:
      return Widen(all, table, 100);
    case Kind::kArrange:
      return all.front()->ArrangeTable(table);
    case Kind::kCreateIndex:
      return CreateIndex(all, IndexOf(table, placement));
    case Kind::kDropIndex:
      return Drop(all, "index of " + table);
  }
  return absl::InternalError("no kind");
}

absl::StatusCode Operation::Twice() const {
  switch (kind) {
    case Kind::kCreate:
    case Kind::kCreateIndex:
      return absl::StatusCode::kAlreadyExists;
    case Kind::kRename:
    case Kind::kDrop:
    case Kind::kDropIndex:
      return absl::StatusCode::kNotFound;
    case Kind::kWiden:
    case Kind::kArrange:
      break;
  }
  return absl::StatusCode::kOk;
}

void Operation::CreateTables(Database& database, bool of_after) const {
  std::vector<TableOptions> tables = {HashTable("b", placement), OrderedTable("a", placement)};
  if (of_after && kind == Kind::kCreate) tables.push_back(HashTable("new a", placement));
  if (of_after && kind == Kind::kRename) tables[1].name = "renamed a";
  if (of_after && kind == Kind::kDrop) tables.pop_back();
  if (of_after && kind == Kind::kWiden) tables[1].payload_bytes = 100;
  for (const TableOptions& table : tables) {
    const auto created = database.CreateTable(table);
    EXPECT_TRUE(created.ok()) << created.status();
  }
  if (kind == (of_after ? Kind::kCreateIndex : Kind::kDropIndex)) {
    const auto created = database.CreateIndex(IndexOf("a", placement));
    EXPECT_TRUE(created.ok()) << created.status();
  }
}

std::unique_ptr<DurableCluster> Operation::Open(const Disk& disk, DurableOptions options) const {
  if (kind == Kind::kDropIndex) options.indexes = {IndexOf("a", placement)};
  return OpenNodes(disk, nodes, {HashTable("b", placement), OrderedTable("a", placement)}, options);
}

// Returns the operations for which `is_meant` is true, on each of these numbers of nodes.
std::vector<Operation> On(std::initializer_list<int> numbers, bool (*is_meant)(const Operation&)) {
  const std::string index = "b:8, a:8, index of a";
  const Operation operations[] = {
      {.name = "Create",
       .kind = Kind::kCreate,
       .after = "b:8, a:8, new a:8",
       .says = "a table is created",
       .instead = "use CreateTableOnAllNodes if all are in this process"},
      {.name = "Rename",
       .kind = Kind::kRename,
       .after = "b:8, renamed a:8",
       .says = "a table is renamed",
       .instead = "use RenameTableOnAllNodes if all are in this process"},
      {.name = "Drop",
       .kind = Kind::kDrop,
       .after = "b:8",
       .says = "a table is dropped",
       .instead = "use DropTableOnAllNodes if all are in this process",
       .not_done = "table 'a' was not dropped",
       .waits_as = Table::State::kBeingDropped},
      {.name = "Widen",
       .kind = Kind::kWiden,
       .after = "b:8, a:100",
       .says = "a table is widened",
       .instead = "use WidenTableOnAllNodes if all are in this process",
       .not_done = "table 'a' was not widened",
       .waits_as = Table::State::kBeingWidened},
      {.name = "Arrange",
       .kind = Kind::kArrange,
       .after = "b:8, a:8",
       .instead = "arrange a table where it is alone",
       .not_done = "table 'a' was not arranged",
       .waits_as = Table::State::kBeingArranged},
      {.name = "CreateIndex",
       .kind = Kind::kCreateIndex,
       .after = index + ":complete",
       .says = "index 'index of a' of table 'a' is made",
       .instead = "use CreateIndexOnAllNodes if all are in this process",
       .not_done = "the secondary index was not made",
       .between = index + ":incomplete",
       .manifests = 3},
      {.name = "DropIndex",
       .kind = Kind::kDropIndex,
       .after = "b:8, a:8",
       .says = "index 'index of a' of table 'a' is dropped",
       .instead = "use DropTableOnAllNodes if all are in this process",
       .not_done = "index 'index of a' is not complete now, but not dropped",
       .before = index + ":complete",
       .between = index + ":incomplete",
       .manifests = 2},
  };
  std::vector<Operation> meant;
  for (const int nodes : numbers) {
    for (Operation operation : operations) {
      if (operation.kind == Kind::kArrange && nodes > 1) continue;
      if (!is_meant(operation)) continue;
      operation.nodes = nodes;
      meant.push_back(operation);
    }
  }
  return meant;
}
bool IsAny(const Operation&) {
  return true;
}
bool IsNoted(const Operation& operation) {
  return !operation.says.empty();
}
bool Waits(const Operation& operation) {
  return !operation.not_done.empty();
}

std::string NameOfOperation(const testing::TestParamInfo<Operation>& info) {
  return info.param.name + (info.param.nodes == 1 ? "OnOneNode" : "OnSeveralNodes");
}

// Expects that each row has its entry in the index, and that there is no other one.
void ExpectIndexed(Database& database) {
  const SecondaryIndex& index = *database.FindIndex("index of a");
  const Status same = database.Run([&](BlockingTransaction& t) -> Status {
    for (uint64_t key = 0; key < kRows; ++key) {
      uint64_t value = 0;
      GANNET_RETURN_IF_ERROR(t.Get(*database.FindTable("a"), key, &value));
      const StatusOr<RowBy> row = t.GetBy(index, value);
      GANNET_RETURN_IF_ERROR(row.status());
      EXPECT_EQ(row->key.integer(), key);
    }
    size_t entries = 0;
    BlockingCursor raw = t.OpenCursor(index.entries(), {.keys_only = true});
    for ([[maybe_unused]] const Cursor& entry : raw) ++entries;
    EXPECT_EQ(entries, kRows);
    return raw.status();
  });
  EXPECT_TRUE(same.ok()) << same;
}

// Returns the name of the table that was "a"; empty: it has been dropped.
std::string NameOfA(Database& database) {
  for (const char* name : {"a", "renamed a"}) {
    if (database.FindTable(name) != nullptr) return name;
  }
  return "";
}

// Expects that the rows of "a", if it is there, have this value, and that those of "b" have 300, on all nodes.
void ExpectAllRows(DurableCluster& cluster, uint64_t value) {
  if (const std::string a = NameOfA(cluster.database()); !a.empty()) ExpectRows(cluster, a, value);
  ExpectRows(cluster, "b", 300);
  for (Database* const node : cluster.nodes()) {
    const SecondaryIndex* const index = node->FindIndex("index of a");
    if (index != nullptr && index->is_complete()) ExpectIndexed(*node);
  }
}

void PutAllRows(DurableCluster& cluster, uint64_t value) {
  PutRowsWithCheckpoints(cluster, "a", value);
  PutRows(cluster, "b", 300);
}

class SchemaChangeTest : public testing::TestWithParam<Operation> {
 protected:
  static const Operation& operation() { return GetParam(); }
  static int nodes() { return GetParam().nodes; }
  static Status Change(DurableCluster& cluster) { return GetParam().Change(cluster.nodes(), "a"); }
};
INSTANTIATE_TEST_SUITE_P(, SchemaChangeTest, testing::ValuesIn(On({1, kNodes}, IsAny)), NameOfOperation);

TEST_P(SchemaChangeTest, IsMadeOnAllNodesAndKept) {
  const Disk disk = NewDisk();
  {
    const auto cluster = operation().Open(disk);
    PutAllRows(*cluster, 100);
    EXPECT_EQ(TablesOnAll(*cluster), operation().before);
    const Status made = Change(*cluster);
    ASSERT_TRUE(made.ok()) << made;
    EXPECT_EQ(TablesOnAll(*cluster), operation().after);
    ExpectAllRows(*cluster, 100);
    EXPECT_EQ(Change(*cluster).code(), operation().Twice());
    for (int node = 0; node < nodes(); ++node) {
      const log::Manifest manifest = ManifestOf(*disk, node, nodes());
      EXPECT_EQ(manifest.tables, ManifestOf(*disk, 0, nodes()).tables);
      EXPECT_EQ(manifest.catalog_generation, nodes() == 1 ? 0u : static_cast<uint64_t>(operation().manifests));
      EXPECT_TRUE(cluster->database(node).OpenSession().ok());
    }
    ASSERT_TRUE(Put(*cluster, "b", 0, 300, nodes() - 1).ok());
  }
  for (const Disk& left : {Disk(disk->CrashedCopy(1)), disk}) {
    const auto cluster = OpenNodes(left, nodes());
    EXPECT_EQ(TablesOnAll(*cluster), operation().after);
    ExpectAllRows(*cluster, 100);
  }
}

TEST_P(SchemaChangeTest, IsRefusedBeforeStartAndAfterClose) {
  const Disk disk = NewDisk();
  { ASSERT_TRUE(operation().Open(disk)->Close().ok()); }
  {
    const auto cluster = OpenNodes(disk, nodes(), {}, {.start = false});
    const Status early = Change(*cluster);
    const bool creates = operation().kind == Kind::kCreate && nodes() == 1;
    EXPECT_EQ(early.code(), creates ? absl::StatusCode::kOk : absl::StatusCode::kFailedPrecondition) << early;
  }
  EXPECT_EQ(TablesOnAll(*OpenNodes(disk, nodes())), operation().before);
  const auto cluster = operation().Open(nullptr);
  ASSERT_TRUE(cluster->database(nodes() - 1).Close().ok()) << "one of them is enough";
  const Status closed = Change(*cluster);
  EXPECT_TRUE(absl::IsFailedPrecondition(closed)) << closed;
}

TEST_P(SchemaChangeTest, OfAMissingTableIsRefused) {
  if (operation().kind == Kind::kCreate) GTEST_SKIP() << "it needs no table";
  const auto cluster = operation().Open(nullptr);
  const Status missing = operation().Change(cluster->nodes(), "c");
  EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
  EXPECT_EQ(TablesOnAll(*cluster), operation().before);
}

// One call makes the change; the others find it made, or in progress.
TEST_P(SchemaChangeTest, SeveralCallsAtTheSameTime) {
  for (int round = 0; round < 3; ++round) {
    const auto cluster = operation().Open(NewDisk());
    PutAllRows(*cluster, 100);
    std::atomic<int> made{0};
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
          const Status status = Change(*cluster);
          made += status.ok() ? 1 : 0;
          EXPECT_TRUE(status.ok() || status.code() == operation().Twice() || absl::IsAborted(status) ||
                      (operation().drops() && absl::IsFailedPrecondition(status)))
              << status;
        });
      }
    }
    if (operation().Twice() == absl::StatusCode::kOk) {
      EXPECT_GE(made, 1);
    } else {
      EXPECT_EQ(made, 1);
    }
    EXPECT_EQ(TablesOnAll(*cluster), operation().after);
    ExpectAllRows(*cluster, 100);
  }
}

// The nodes close while tables change: each change is refused, or made everywhere, and nobody waits for long.
TEST_P(SchemaChangeTest, WhileTheNodesClose) {
  if (operation().kind == Kind::kCreateIndex && nodes() > 1)
    GTEST_SKIP() << "txn/all_nodes.h allows no close meanwhile";
  constexpr int kTables = 12;
  std::vector<TableOptions> tables;
  DurableOptions options;
  for (int i = 0; i < kTables; ++i) {
    tables.push_back(SpreadOrdered(absl::StrCat("t", i)));
    if (operation().kind == Kind::kDropIndex) options.indexes.push_back(IndexOf(tables.back().name));
  }
  for (uint64_t round = 0; round < 4; ++round) {
    const Disk disk = NewDisk();
    std::string left;
    {
      const auto cluster = OpenNodes(disk, nodes(), tables, options);
      std::atomic<int> made{0};
      std::jthread changes([&] {
        for (const TableOptions& table : tables) {
          const Status status = operation().Change(cluster->nodes(), table.name);
          if (!status.ok()) {
            EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
            break;
          }
          ++made;
        }
        left = TablesOf(cluster->database());
      });
      // The nodes close after another number of changes in each round.
      while (made.load() < static_cast<int>(round) * 3) std::this_thread::yield();
      Status closed = cluster->Close();
      // The sessions of an index that is being made are open.
      while (operation().kind == Kind::kCreateIndex && absl::IsFailedPrecondition(closed)) closed = cluster->Close();
      EXPECT_TRUE(closed.ok()) << closed;
    }
    EXPECT_EQ(TablesOnAll(*OpenNodes(disk, nodes())), left);
  }
}

// --- Changes of the manifests ---

class NotedChangeTest : public SchemaChangeTest {
 protected:
  // Checks the tables in memory after the change has ended.
  static void ExpectInMemory(const std::string& now, bool made, bool power_cut) {
    if (made || (operation().kind == Kind::kDrop && nodes() == 1)) {
      EXPECT_EQ(now, operation().after);
    } else if (operation().drops() && (nodes() == 1 || power_cut)) {
      EXPECT_THAT(now, AnyOf(operation().before, operation().between, operation().after));
    } else {
      EXPECT_THAT(now, AnyOf(operation().before, operation().between));
    }
  }
  // Checks the tables after a start from the directory.
  static void ExpectOnDisk(const std::string& now, bool made, bool power_cut) {
    if (made) {
      EXPECT_EQ(now, operation().after);
    } else if (nodes() == 1 || power_cut) {
      EXPECT_THAT(now, AnyOf(operation().before, operation().between, operation().after));
    } else {
      EXPECT_THAT(now, AnyOf(operation().before, operation().between)) << "it was taken back";
    }
  }
};
INSTANTIATE_TEST_SUITE_P(, NotedChangeTest, testing::ValuesIn(On({1, kNodes}, IsNoted)), NameOfOperation);

// The disk breaks at every operation on a manifest, by a power cut or by one error. Afterwards the tables are those
// before the change or those after it, with all rows, also those that were written after an error; and the change can
// be made.
TEST_P(NotedChangeTest, ACrashLeavesTheTablesBeforeItOrAfterIt) {
  const Disk first = NewDisk();
  PutAllRows(*operation().Open(first), 100);
  const DiskImage image = ImageOf(*first);
  std::set<std::string> seen;
  enum class End : uint8_t { kPowerCut, kError, kErrorAndCheckpoint };
  std::vector<End> ends = {End::kPowerCut};
  if (nodes() == 1 || !operation().drops()) ends.push_back(End::kError);
  if (operation().drops()) ends.push_back(End::kErrorAndCheckpoint);
  for (const End end : ends) {
    const bool power_cut = end == End::kPowerCut;
    // Each operation has other places of the same steps, so together they have all.
    const uint64_t step = StepOfPlaces(nodes() == 1 ? 1 : 4);
    for (uint64_t at = 1 + static_cast<uint64_t>(operation().kind) % step;; at += step) {
      SCOPED_TRACE(testing::Message() << (power_cut ? "power cut" : "error") << " at operation " << at
                                      << (end == End::kErrorAndCheckpoint ? ", then a checkpoint" : ""));
      const Disk disk = DiskOf(image, at);
      std::atomic<uint64_t> operations{0};
      bool made = false;
      std::string in_memory;
      uint64_t value = 100;
      {
        const auto cluster = OpenNodes(disk, nodes(), {}, {.database = {.durable_within = absl::Milliseconds(500)}});
        BreakAtManifest(disk, at, power_cut, &operations);
        made = Change(*cluster).ok();
        disk->SetOptions({});
        in_memory = TablesOnAll(*cluster);
        ExpectInMemory(in_memory, made, power_cut);
        if (!power_cut) {
          if (!made && cluster->database().FindTable("a") != nullptr) PutRows(*cluster, "a", value = 200);
          ASSERT_TRUE(Put(*cluster, "b", 1, 301).ok());
        }
        if (end == End::kErrorAndCheckpoint) {
          const Status taken = cluster->database(static_cast<int>(at) % nodes()).Checkpoint();
          ASSERT_TRUE(taken.ok()) << taken;
        }
      }
      if (operations.load() < at) {
        EXPECT_GT(at, static_cast<uint64_t>(3 * nodes() * operation().manifests))
            << "the replacement of a file has more operations than that";
        break;
      }
      disk->Heal();
      for (uint64_t seed = 1; seed <= (power_cut && nodes() == 1 ? 8 : 1); ++seed) {
        const auto cluster = OpenNodes(power_cut ? Disk(disk->CrashedCopy(at * 10 + seed)) : disk, nodes());
        const std::string now = TablesOnAll(*cluster);
        ExpectOnDisk(now, made, power_cut);
        if (end == End::kErrorAndCheckpoint && in_memory == operation().after) {
          EXPECT_EQ(now, in_memory) << "each manifest leaves out what is dropped";
        }
        seen.insert(now);
        ExpectAllRows(*cluster, value);
        if (now != operation().after) {
          const Status again = Change(*cluster);
          ASSERT_TRUE(again.ok()) << again;
        }
        EXPECT_EQ(TablesOnAll(*cluster), operation().after);
        ExpectAllRows(*cluster, value);
      }
    }
  }
  if (nodes() == 1 || IsThorough()) {
    EXPECT_EQ(seen, std::set({operation().before, operation().between, operation().after}));
  }
}

// No manifest can be written. The error says that the directory may have either; a table that is to go is gone.
TEST_P(NotedChangeTest, WhereNoManifestCanBeWrittenTheErrorSaysWhatMayBe) {
  const Disk disk = NewDisk();
  {
    const auto cluster = operation().Open(disk);
    PutAllRows(*cluster, 100);
    FailWrites(*disk, "MANIFEST");
    const Status refused = Change(*cluster);
    EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
    const bool drops = operation().kind == Kind::kDrop;
    EXPECT_THAT(Message(refused), HasSubstr(drops ? "is dropped here, but" : "the directory may have it"));
    EXPECT_EQ(TablesOnAll(*cluster), drops ? operation().after : operation().before);
    ExpectAllRows(*cluster, 100);
    ExpectOnDisk(TablesOnAll(*OpenAfterCrash(disk, nodes())), /*made=*/false, /*power_cut=*/true);
    disk->Heal();
    const Status again = Change(*cluster);
    EXPECT_EQ(again.code(), drops ? absl::StatusCode::kNotFound : absl::StatusCode::kOk) << again;
    const Status taken = CheckpointOf(cluster->nodes());
    ASSERT_TRUE(taken.ok()) << taken;
  }
  const auto cluster = OpenAfterCrash(disk, nodes());
  EXPECT_EQ(TablesOnAll(*cluster), operation().after);
  ExpectAllRows(*cluster, 100);
}

// The disk has no room. When it has some again, the change can be made.
TEST_P(NotedChangeTest, AFullDiskRefusesIt) {
  const Disk disk = NewDisk();
  {
    const auto cluster = operation().Open(disk);
    PutAllRows(*cluster, 100);
    disk->SetCapacity(1);
    const Status refused = Change(*cluster);
    EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
    ExpectInMemory(TablesOnAll(*cluster), /*made=*/false, /*power_cut=*/true);
    ExpectOnDisk(TablesOnAll(*OpenAfterCrash(disk, nodes())), /*made=*/false, /*power_cut=*/true);
    disk->SetCapacity(uint64_t{1} << 40);
    for (Database* const node : cluster->nodes()) {
      while (!node->log_health().ok()) SleepForNanos(1'000'000);  // it tries again every 100 ms
    }
    const Status again = Change(*cluster);
    EXPECT_TRUE(again.ok() || absl::IsNotFound(again)) << again;
    EXPECT_EQ(TablesOnAll(*cluster), operation().after);
    const Status taken = CheckpointOf(cluster->nodes());
    ASSERT_TRUE(taken.ok()) << taken;
  }
  const auto cluster = OpenAfterCrash(disk, nodes());
  EXPECT_EQ(TablesOnAll(*cluster), operation().after);
  ExpectAllRows(*cluster, 100);
}

// --- Changes that wait for transactions ---

class AwaitedChangeTest : public SchemaChangeTest {
 protected:
  // True if the change has taken the table, or published the index, on all nodes.
  static bool HasBegun(DurableCluster& cluster) {
    return std::ranges::all_of(cluster.nodes(), [](Database* node) {
      const SecondaryIndex* const index = node->FindIndex("index of a");
      switch (operation().kind) {
        case Kind::kCreateIndex:
          return node->FindTable("a")->secondary_indexes() != nullptr;
        case Kind::kDropIndex:
          return !index->is_complete();
        default:
          return node->FindTable("a")->state() == operation().waits_as;
      }
    });
  }
  static void AwaitBegin(DurableCluster& cluster) {
    while (!HasBegun(cluster)) SleepForNanos(1'000'000);
  }
};
INSTANTIATE_TEST_SUITE_P(, AwaitedChangeTest, testing::ValuesIn(On({1, kNodes}, Waits)), NameOfOperation);

// It waits for a transaction of any node, but not for long. Afterwards the table is as it was, and the transaction
// commits what it has done before.
TEST_P(AwaitedChangeTest, WaitsForTransactionsOfEveryNodeForALimitedTime) {
  const auto cluster = operation().Open(nullptr, {.database = {.durable_within = absl::Milliseconds(100)}});
  PutRows(*cluster, "a", 100);
  PutRows(*cluster, "b", 300);
  const auto change = [&] {
    if (operation().kind != Kind::kCreateIndex) return Change(*cluster);
    SecondaryIndexOptions index = IndexOf("a");
    index.wait_for_transactions = absl::Milliseconds(100);
    return CreateIndex(cluster->nodes(), index);
  };
  for (int node = 0; node < nodes(); ++node) {
    auto open = cluster->database(node).Begin();
    ASSERT_TRUE(open.ok()) << open.status();
    const uint64_t value = 1000 * (static_cast<uint64_t>(node) + 1);
    for (uint64_t key = 0; key < kRows; ++key) {
      ASSERT_TRUE((*open)->Update(cluster->table("a", node), key, value + key).ok());
    }
    const Status late = change();
    EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
    EXPECT_THAT(Message(late), HasSubstr(operation().not_done));
    const Status committed = open->Commit();
    EXPECT_TRUE(committed.ok()) << committed;
    EXPECT_THAT(TablesOnAll(*cluster), AnyOf(operation().before, operation().between));
    for (Database* const each : cluster->nodes()) EXPECT_EQ(each->FindTable("a")->state(), Table::State::kUsed);
    ExpectAllRows(*cluster, value);
  }
  const Status made = Patiently(change);
  EXPECT_TRUE(made.ok()) << made;
  EXPECT_EQ(TablesOnAll(*cluster), operation().after);
  ExpectAllRows(*cluster, 1000 * static_cast<uint64_t>(nodes()));
}

// While it waits for a transaction, no node uses the table, whichever node has the row. A table whose index comes or
// goes is used.
TEST_P(AwaitedChangeTest, WhatNodesMeetWhileItWaits) {
  const auto cluster = operation().Open(NewDisk());
  PutRows(*cluster, "a", 100);
  PutRows(*cluster, "b", 300);
  auto open = cluster->database(nodes() - 1).Begin();
  ASSERT_TRUE(open.ok()) << open.status();
  ASSERT_TRUE((*open)->Update(cluster->table("b", nodes() - 1), 1, uint64_t{301}).ok());
  std::jthread changes([&] {
    const Status made = Change(*cluster);
    EXPECT_TRUE(made.ok()) << made;
  });
  AwaitBegin(*cluster);
  for (Database* const node : cluster->nodes()) {
    const Table& a = *node->FindTable("a");
    for (uint64_t key = 0; key < kRows; ++key) {
      auto late = node->Begin();
      ASSERT_TRUE(late.ok()) << late.status();
      uint64_t value = 0;
      const Status got = (*late)->Get(a, key, &value);
      if (operation().waits_as == Table::State::kUsed) {
        EXPECT_TRUE(got.ok()) << got;
        EXPECT_TRUE((*late)->Update(a, key, value).ok());
        EXPECT_TRUE(late->Commit().ok());
      } else if (operation().kind == Kind::kDrop) {
        EXPECT_TRUE(absl::IsFailedPrecondition(got)) << got;
        EXPECT_THAT(Message(got), HasSubstr("table 'a' is being dropped"));
      } else {
        EXPECT_TRUE(absl::IsAborted(got)) << got;
        EXPECT_THAT(Message(got),
                    HasSubstr(operation().kind == Kind::kWiden ? "is being widened" : "is being arranged"));
      }
    }
  }
  EXPECT_TRUE(HasBegun(*cluster)) << "it has not ended meanwhile";
  EXPECT_TRUE(open->Commit().ok());
  changes.join();
  EXPECT_EQ(TablesOnAll(*cluster), operation().after);
  ExpectAllRows(*cluster, 100);
}

// The program asks it to stop while it waits. It can be made later.
TEST_P(AwaitedChangeTest, AStopEndsIt) {
  std::atomic<bool> stop{false};
  const auto cluster = operation().Open(NewDisk(), {.database = {.stop = &stop}});
  PutRows(*cluster, "a", 100);
  PutRows(*cluster, "b", 300);
  {
    auto open = cluster->database().Begin();
    ASSERT_TRUE(open.ok()) << open.status();
    uint64_t value = 0;
    ASSERT_TRUE((*open)->Get(cluster->table("b"), 1, &value).ok());
    std::jthread changes([&] {
      const Status stopped = Change(*cluster);
      EXPECT_TRUE(absl::IsCancelled(stopped)) << stopped;
    });
    AwaitBegin(*cluster);
    stop = true;
  }
  stop = false;
  EXPECT_THAT(TablesOnAll(*cluster), AnyOf(operation().before, operation().between));
  PutRows(*cluster, "a", 200);
  ExpectAllRows(*cluster, 200);
  const Status made = Change(*cluster);
  ASSERT_TRUE(made.ok()) << made;
  EXPECT_EQ(TablesOnAll(*cluster), operation().after);
  ExpectAllRows(*cluster, 200);
}

// --- Several nodes ---

class ChangeOnNodesTest : public SchemaChangeTest {};
INSTANTIATE_TEST_SUITE_P(, ChangeOnNodesTest, testing::ValuesIn(On({kNodes}, IsAny)), NameOfOperation);

TEST_P(ChangeOnNodesTest, IsMadeByAllNodesTogether) {
  const auto cluster = operation().Open(nullptr);
  const Databases& all = cluster->nodes();
  for (Database* const node : all) {
    const Status alone = operation().Change({node}, "a");
    EXPECT_TRUE(absl::IsUnimplemented(alone)) << alone;
    EXPECT_THAT(Message(alone), HasSubstr(operation().instead));
  }
  const auto other = operation().Open(nullptr);
  for (const Databases& wrong :
       {Databases{}, Databases{all[0], all[1]}, Databases{all[0], all[0]}, Databases{all[0], all[1], nullptr},
        Databases{all[0], all[1], all[2], all[2]}, Databases{all[0], all[1], &other->database(2)}}) {
    const Status refused = operation().Change(wrong, "a");
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    EXPECT_THAT(Message(refused), HasSubstr("the tables of all nodes are changed together: "));
  }
  EXPECT_EQ(TablesOnAll(*cluster), operation().before);
  const Status made = operation().Change({all[2], all[0], all[1]}, "a");
  EXPECT_TRUE(made.ok()) << made;
  EXPECT_EQ(TablesOnAll(*cluster), operation().after);
}

// A node dies while the change waits for a transaction, or before it: the others keep the tables.
TEST_P(ChangeOnNodesTest, ANodeDies) {
  Operation on_first = operation();
  on_first.placement = Placement::OnFirstNode();
  const auto cluster = on_first.Open(nullptr);
  PutRows(*cluster, "a", 100);
  auto open = cluster->database(1).Begin();
  ASSERT_TRUE(open.ok()) << open.status();
  ASSERT_TRUE((*open)->Insert(cluster->table("b", 1), 1, uint64_t{301}).ok());
  const auto change = [&] {
    const Status ended = on_first.Change(cluster->nodes(), "a");
    EXPECT_TRUE(absl::IsUnavailable(ended)) << ended;
  };
  if (Waits(operation())) {
    std::jthread changes(change);
    const auto begun = [&] {
      const Database& node = cluster->database(1);
      const SecondaryIndex* const index = node.FindIndex("index of a");
      return operation().kind == Kind::kCreateIndex ? node.FindTable("a")->secondary_indexes() != nullptr
             : index != nullptr                     ? !index->is_complete()
                                                    : node.FindTable("a")->state() == operation().waits_as;
    };
    while (!begun()) SleepForNanos(1'000'000);
    cluster->Kill(2);
    EXPECT_TRUE(open->Commit().ok());
  } else {
    cluster->Kill(2);
    EXPECT_TRUE(open->Commit().ok());
  }
  change();
  for (int node = 0; node < 2; ++node) {
    EXPECT_THAT(TablesOf(cluster->database(node)), AnyOf(operation().before, operation().between));
    for (uint64_t key = 0; key < kRows; ++key) EXPECT_EQ(Get(*cluster, "a", key, node).value(), 100 + key);
    EXPECT_TRUE(Put(*cluster, "a", 50, 500 + static_cast<uint64_t>(node), node).ok());
  }
}

// A client that comes back after the change is compared with the tables of now.
TEST_P(ChangeOnNodesTest, AClientComesBack) {
  NodesWithClient nodes;
  for (Database* const node : nodes.all()) operation().CreateTables(*node, /*of_after=*/false);
  ASSERT_TRUE(nodes.Start().ok());
  const auto put = [&](Database& node) {
    return node.Run([&](BlockingTransaction& t) -> Status {
      for (uint64_t key = 0; key < kRows; ++key) {
        GANNET_RETURN_IF_ERROR(t.Upsert(*node.FindTable("a"), key, 100 + key));
      }
      return absl::OkStatus();
    });
  };
  ASSERT_TRUE(put(nodes.client()).ok());
  const Status made = operation().Change(nodes.all(), "a");
  ASSERT_TRUE(made.ok()) << made;
  for (const bool knows : {false, true}) {
    Database& client = nodes.Reopen();
    operation().CreateTables(client, /*of_after=*/knows);
    const Status started = client.Start();
    EXPECT_EQ(started.ok(), knows) << started;
  }
  Database& client = nodes.client();
  EXPECT_EQ(TablesOf(client), operation().after);
  if (operation().kind == Kind::kCreateIndex) ExpectIndexed(client);
  if (operation().kind == Kind::kDrop || operation().kind == Kind::kWiden) return;
  const Table& a = *client.FindTable(NameOfA(client));
  uint64_t value = 0;
  ASSERT_TRUE(client.Run([&](BlockingTransaction& t) { return t.Get(a, 7, &value); }).ok());
  EXPECT_EQ(value, 107u);
}

class NotedChangeOnNodesTest : public SchemaChangeTest {};
INSTANTIATE_TEST_SUITE_P(, NotedChangeOnNodesTest, testing::ValuesIn(On({kNodes}, IsNoted)), NameOfOperation);

TEST_P(NotedChangeOnNodesTest, OneManifestThatHasItIsEnough) {
  std::vector<TableOptions> tables = {Spread("b"), SpreadOrdered("a")};
  WithManifestsBehind(
      tables,
      [](DurableCluster& cluster) {
        if (operation().kind == Kind::kDropIndex) {
          ASSERT_TRUE(CreateIndex(cluster.nodes(), IndexOf("a")).ok());
        }
        PutAllRows(cluster, 100);
      },
      [](DurableCluster& cluster) { ASSERT_TRUE(Change(cluster).ok()); },
      [](DurableCluster& cluster, bool all_behind) {
        EXPECT_EQ(TablesOnAll(cluster), all_behind ? operation().before : operation().after);
        ExpectAllRows(cluster, 100);
        ASSERT_TRUE(cluster.database(1).Checkpoint().ok());
      });
}

// The manifest of one node cannot be written: the change is made on no node. The rows, also those that come afterwards,
// survive checkpoints and a crash.
TEST_P(NotedChangeOnNodesTest, AnErrorOfOneNodesDiskTakesItBack) {
  for (int node = 0; node < kNodes; ++node) {
    for (int written = 0; written < operation().manifests; ++written) {
      SCOPED_TRACE(testing::Message() << "node " << node << ", after " << written << " changes of its manifest");
      const Disk disk = NewDisk();
      {
        const auto cluster = operation().Open(disk);
        PutAllRows(*cluster, 100);
        FailWrites(*disk, PathOfManifest(node, kNodes), static_cast<uint64_t>(written));
        const Status refused = Change(*cluster);
        EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
        EXPECT_THAT(Message(refused), HasSubstr(absl::StrCat(": node ", node, ": ")));
        if (operation().manifests == 1) {
          EXPECT_THAT(Message(refused), HasSubstr(absl::StrCat("when ", operation().says, ": node ")));
        }
        EXPECT_THAT(Message(refused), HasSubstr("It was done on no node"));
        EXPECT_THAT(TablesOnAll(*cluster), AnyOf(operation().before, operation().between));
        for (int at = 0; at < kNodes && operation().kind == Kind::kCreateIndex; ++at) {
          EXPECT_TRUE(Put(*cluster, "a", 1, 102, at).ok()) << "no node keeps the index: two rows may have one value";
        }
        PutRows(*cluster, "a", 200);
        const auto expect_after_crash = [&] {
          for (uint64_t seed = 1; seed <= 2; ++seed) {
            const auto crashed = OpenAfterCrash(disk, kNodes, seed);
            EXPECT_THAT(TablesOnAll(*crashed), AnyOf(operation().before, operation().between));
            ExpectAllRows(*crashed, 200);
          }
        };
        expect_after_crash();
        disk->Heal();
        const Status taken = CheckpointOf(cluster->nodes());
        ASSERT_TRUE(taken.ok()) << taken;
        expect_after_crash();
        const Status made = Change(*cluster);
        ASSERT_TRUE(made.ok()) << made;
        EXPECT_EQ(TablesOnAll(*cluster), operation().after);
      }
      const auto cluster = OpenAfterCrash(disk, kNodes);
      EXPECT_EQ(TablesOnAll(*cluster), operation().after);
      ExpectAllRows(*cluster, 200);
    }
  }
}

// The manifest of the last node cannot be written, and that of another one, which has the change, cannot be taken back
// for a while.
TEST_P(NotedChangeOnNodesTest, AManifestThatIsNotTakenBackIsOutdated) {
  for (int node = 0; node + 1 < kNodes; ++node) {
    SCOPED_TRACE(testing::Message() << "node " << node);
    const Disk disk = NewDisk();
    {
      const auto cluster = operation().Open(disk);
      PutAllRows(*cluster, 100);
      const auto before = ManifestOf(*disk, node).tables;
      FailWrites(*disk, PathOfManifest(kNodes - 1, kNodes));
      FailWrites(*disk, PathOfManifest(node, kNodes), 1);
      const Status refused = Change(*cluster);
      EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
      EXPECT_THAT(Message(refused), HasSubstr("It was done on no node"));
      EXPECT_EQ(TablesOnAll(*cluster), operation().before);
      EXPECT_NE(ManifestOf(*disk, node).tables, before) << "it has the change";
      ExpectAllRows(*OpenAfterCrash(disk, kNodes), 100);
      PutRows(*cluster, "a", 200);
      disk->Heal();
      for (int checkpoint = 0; checkpoint < 2; ++checkpoint) {
        ASSERT_TRUE(cluster->database(node).Checkpoint().ok());
        EXPECT_EQ(ManifestOf(*disk, node).tables, before);
      }
      const auto crashed = OpenAfterCrash(disk, kNodes, 2);
      EXPECT_EQ(TablesOnAll(*crashed), operation().before);
      ExpectAllRows(*crashed, 200);
      const Status made = Change(*cluster);
      ASSERT_TRUE(made.ok()) << made;
    }
    EXPECT_EQ(TablesOnAll(*OpenAfterCrash(disk, kNodes)), operation().after);
  }
}

// Opening what was there needs no space, so a manifest may stay behind for long.
TEST_P(NotedChangeOnNodesTest, AFullDiskKeepsAManifestBehind) {
  const Disk disk = NewDisk();
  DiskImage before;
  {
    const auto cluster = operation().Open(disk);
    PutAllRows(*cluster, 100);
    before = ImageOf(*disk);
    ASSERT_TRUE(Change(*cluster).ok());
  }
  DiskImage image = ImageOf(*disk);
  for (const int node : {0, 2}) image[PathOfManifest(node, kNodes)] = before.at(PathOfManifest(node, kNodes));
  const Disk crashed = DiskOf(image);
  const auto behind = ManifestOf(*crashed, 0).tables;
  {
    crashed->SetCapacity(1);
    const auto cluster = OpenNodes(crashed, kNodes);
    EXPECT_EQ(TablesOnAll(*cluster), operation().after);
    ExpectAllRows(*cluster, 100);
    EXPECT_EQ(ManifestOf(*crashed, 0).tables, behind);
    crashed->SetCapacity(uint64_t{1} << 40);
    for (Database* const node : cluster->nodes()) {
      while (!node->log_health().ok()) SleepForNanos(1'000'000);  // it tries again every 100 ms
    }
    PutRows(*cluster, "b", 300);
    const Status taken = cluster->database().Checkpoint();
    ASSERT_TRUE(taken.ok()) << taken;
    EXPECT_EQ(ManifestOf(*crashed, 0).tables, behind);
  }
  const auto cluster = OpenNodes(crashed, kNodes);
  EXPECT_EQ(TablesOnAll(*cluster), operation().after);
  ExpectAllRows(*cluster, 100);
}

}  // namespace schema_change_test
}  // namespace gannet::txn
