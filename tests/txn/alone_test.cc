// A thread that is alone meets no conflict: each body runs once, whatever the engine does meanwhile in the background.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "tests/index/kinds.h"
#include "tests/txn/cluster.h"
#include "tests/txn/durable_cluster.h"
#include "tests/txn/secondary_helpers.h"
#include "tests/txn/table_kinds.h"

namespace gannet::txn {
namespace alone_test {

// More than the rounds of the epochs take in which retired memory becomes free and empty leaves are unlinked.
constexpr uint64_t kHousekeepingNanos = 40'000'000;
constexpr int kMostAttempts = 5;

class AloneTest : public testing::Test {
 protected:
  using Body = std::function<Status(BlockingTransaction&)>;

  // Runs the body, and expects that it runs once and succeeds.
  static void Once(Session& session, const Body& body) {
    int attempts = 0;
    const Status status = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
      if (++attempts > kMostAttempts) return absl::InternalError("the body runs again and again");
      return body(t);
    });
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(attempts, 1);
  }
};

// Rows come, go all together, and come back. Emptied leaves are unlinked while a transaction has found them empty.
class AloneWithRowsTest : public AloneTest, public testing::WithParamInterface<int> {
 protected:
  AloneWithRowsTest()
      : cluster_({.nodes = 2}, AllKinds(sizeof(uint64_t), false)), session_(cluster_.NewSession(node())) {}

  static int node() { return GetParam(); }  // the rows are on node 0

  void Go(const TableOptions& options, uint64_t rows) {
    SCOPED_TRACE(absl::StrCat(options.name, ", ", rows, " rows"));
    const Table& table = cluster_.table(node(), options.name);
    std::vector<index::OwnedKey> keys;
    for (uint64_t n = 0; n < rows; ++n) keys.push_back(KeyOf(options, n));
    const auto each = [&](const std::function<Status(BlockingTransaction&, const index::Key&)>& change) {
      return [&keys, change](BlockingTransaction& t) -> Status {
        for (const index::OwnedKey& key : keys) GANNET_RETURN_IF_ERROR(change(t, key.view()));
        return absl::OkStatus();
      };
    };
    const auto insert = each([&](auto& t, const auto& key) { return t.Insert(table, key, uint64_t{1}); });
    const auto remove = each([&](auto& t, const auto& key) { return t.Remove(table, key); });
    const auto upsert = each([&](auto& t, const auto& key) { return t.Upsert(table, key, uint64_t{2}); });
    Once(session_, insert);
    Once(session_, remove);
    Once(session_, upsert);
    Once(session_, remove);
    Once(session_, [&](BlockingTransaction& t) {
      const Status changed = upsert(t);
      SleepForNanos(kHousekeepingNanos);
      return changed;
    });
    Once(session_, remove);
    // What is absent stays absent, while the housekeeping goes on.
    Once(session_, [&](BlockingTransaction& t) -> Status {
      for (const index::OwnedKey& key : keys) {
        const StatusOr<bool> exists = t.Exists(table, key.view());
        if (!exists.ok()) return exists.status();
        EXPECT_FALSE(*exists);
      }
      SleepForNanos(kHousekeepingNanos);
      return t.Insert(table, keys[keys.size() / 2].view(), uint64_t{3});
    });
    Once(session_, [&](BlockingTransaction& t) { return t.Remove(table, keys[keys.size() / 2].view()); });
  }

  Cluster cluster_;
  Session& session_;
};

TEST_P(AloneWithRowsTest, FewRows) {
  for (const TableOptions& options : AllKinds(sizeof(uint64_t), false)) Go(options, 40);
}

TEST_P(AloneWithRowsTest, ManyLeaves) {
  for (const TableOptions& options : AllKinds(sizeof(uint64_t), false)) Go(options, 2000);
}

INSTANTIATE_TEST_SUITE_P(Nodes, AloneWithRowsTest, testing::Values(0, 1),
                         [](const auto& node) { return node.param == 0 ? "AtTheOwner" : "ElsewhereByVerbs"; });

TEST_F(AloneTest, VeryManyLeaves) {
  Cluster cluster({}, {{.name = "rows", .index = IndexKind::kXStore, .payload_bytes = sizeof(uint64_t)}});
  Session& session = cluster.NewSession(0);
  const Table& table = cluster.table(0, "rows");
  constexpr uint64_t kRows = 100'000;
  for (int round = 0; round < 2; ++round) {
    Once(session, [&](BlockingTransaction& t) -> Status {
      for (uint64_t key = 0; key < kRows; ++key) GANNET_RETURN_IF_ERROR(t.Upsert(table, key, key));
      return absl::OkStatus();
    });
    Once(session, [&](BlockingTransaction& t) -> Status {
      for (uint64_t key = 0; key < kRows; ++key) GANNET_RETURN_IF_ERROR(t.Remove(table, key));
      return absl::OkStatus();
    });
  }
}

// The table is a queue: each transaction adds the next row at one end, and removes the first one at the other.
TEST_F(AloneTest, AQueue) {
  for (const IndexKind kind : index::OrderedKinds()) {
    SCOPED_TRACE(index::EntryOf(kind).name);
    Cluster cluster({}, {{.name = "queue", .index = kind, .payload_bytes = sizeof(uint64_t)}});
    Session& session = cluster.NewSession(0);
    const Table& queue = cluster.table(0, "queue");
    constexpr uint64_t kLength = 100;
    constexpr uint64_t kTransactions = 20'000;
    uint64_t attempts = 0;
    for (uint64_t key = 0; key < kTransactions; ++key) {
      const Status status = RunBlockingBody(session, [&](BlockingTransaction& t) -> Status {
        ++attempts;
        GANNET_RETURN_IF_ERROR(t.Insert(queue, key, key));
        if (key < kLength) return absl::OkStatus();
        BlockingCursor first = t.Rows(queue);
        GANNET_RETURN_IF_ERROR(first.First());
        if (!first.valid()) return absl::InternalError("the queue is empty");
        return t.Remove(queue, first.key());
      });
      ASSERT_TRUE(status.ok()) << status;
    }
    EXPECT_EQ(attempts, kTransactions);
  }
}

TEST_F(AloneTest, SecondaryIndexes) {
  auto database = Database::OpenInMemory({.memory_bytes = uint64_t{512} << 20}).value();
  const Table& people = **database->CreateTable(People());
  ASSERT_TRUE(database->CreateIndex(ByCity()).ok());
  ASSERT_TRUE(database->CreateIndex(ByMail()).ok());
  ASSERT_TRUE(database->Start().ok());
  auto session = database->OpenSession().value();
  constexpr uint64_t kPeople = 3000;
  const auto upsert = [&](BlockingTransaction& t) -> Status {
    for (uint64_t key = 0; key < kPeople; ++key) {
      const auto city = static_cast<uint32_t>(key % 100);
      GANNET_RETURN_IF_ERROR(t.Upsert(people, key, MakePerson(absl::StrCat("p", key), city)));
    }
    return absl::OkStatus();
  };
  for (int round = 0; round < 4; ++round) {
    Once(*session, [&](BlockingTransaction& t) {
      const Status changed = upsert(t);
      if (round >= 2) SleepForNanos(kHousekeepingNanos);
      return changed;
    });
    Once(*session, [&](BlockingTransaction& t) -> Status {
      for (uint64_t key = 0; key < kPeople; ++key) GANNET_RETURN_IF_ERROR(t.Remove(people, key));
      return absl::OkStatus();
    });
  }
}

// The thread works at either of two nodes with logs, on rows of both. A node that answers too late leaves a lock for a
// while, so on a busy machine a few bodies may run twice.
TEST_F(AloneTest, ADirectoryOfTwoNodes) {
  const std::vector<TableOptions> tables = {HashTable("hash", Placement::ByHash()),
                                            OrderedTable("ordered", Placement::ByHash()), HashTable("first")};
  auto cluster = DurableCluster::Open(std::make_shared<log::FaultyFileSystem>(1), tables, {.nodes = 2}).value();
  struct Step {
    const Table* table;
    uint64_t key;
    uint64_t kind;
  };
  Random random(3);
  constexpr int kTransactions = 4000;
  int repeated = 0;
  for (int transaction = 0; transaction < kTransactions; ++transaction) {
    const int node = static_cast<int>(random.Below(2));
    std::vector<Step> steps(1 + random.Below(6));
    for (Step& step : steps) {
      const std::string& name = tables[random.Below(tables.size())].name;
      step = {&cluster->table(name, node), random.Below(60), random.Below(5)};
    }
    int attempts = 0;
    const Status status = cluster->database(node).Run([&](BlockingTransaction& t) -> Status {
      ++attempts;
      for (const Step& step : steps) {
        uint64_t value = 0;
        Status done;
        if (step.kind == 0) done = t.Get(*step.table, step.key, &value);
        if (step.kind == 1) done = t.Remove(*step.table, step.key);
        if (step.kind == 2) done = t.Update(*step.table, step.key, value);
        if (step.kind > 2) done = t.Upsert(*step.table, step.key, value);
        if (!done.ok() && !absl::IsNotFound(done)) return done;
      }
      return absl::OkStatus();
    });
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_GE(attempts, 1);
    repeated += attempts - 1;
  }
  EXPECT_LE(repeated, kTransactions / 100);
}

}  // namespace alone_test
}  // namespace gannet::txn
