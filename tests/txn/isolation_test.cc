// Interleavings that a serializable engine must refuse, step by step: two or three transactions, of workers on the
// data's node and on another one, in every combination.
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/index/kinds.h"
#include "tests/txn/cluster.h"

namespace gannet::txn {
namespace isolation_test {

// Nodes of the first and the second worker, the data is on node 0; the kind of the ordered table.
using Places = std::tuple<int, int, IndexKind>;

class IsolationTest : public testing::TestWithParam<Places> {
 protected:
  IsolationTest()
      : cluster({.nodes = 2, .worked_at = {std::get<0>(GetParam()), std::get<1>(GetParam())}},
                {{.name = "points", .payload_bytes = sizeof(Account), .expected_rows = 1000},
                 {.name = "ordered", .index = std::get<2>(GetParam()), .payload_bytes = sizeof(Account)}}),
        one(cluster.NewSession(std::get<0>(GetParam()))),
        two(cluster.NewSession(std::get<1>(GetParam()))),
        place_of_three(cluster.databases[0] != nullptr ? 0 : std::get<0>(GetParam())),
        three(cluster.NewSession(place_of_three)) {
    const Status loaded = RunBlockingBody(three, [&](BlockingTransaction& t) -> Status {
      for (uint64_t key = 0; key < 40; key += 2) {
        if (Status s = t.Insert(points3(), key, Account{.balance = 100}); !s.ok()) return s;
        if (Status s = t.Insert(ordered3(), key, Account{.balance = 100}); !s.ok()) return s;
      }
      return absl::OkStatus();
    });
    EXPECT_TRUE(loaded.ok()) << loaded;
  }

  const Table& points1() { return cluster.table(std::get<0>(GetParam()), "points"); }
  const Table& points2() { return cluster.table(std::get<1>(GetParam()), "points"); }
  const Table& points3() { return cluster.table(place_of_three, "points"); }
  const Table& ordered1() { return cluster.table(std::get<0>(GetParam()), "ordered"); }
  const Table& ordered2() { return cluster.table(std::get<1>(GetParam()), "ordered"); }
  const Table& ordered3() { return cluster.table(place_of_three, "ordered"); }

  static int64_t Get(Step& step, const Table& table, uint64_t key) {
    Account account;
    const Status status = step->Get(table, key, &account);
    EXPECT_TRUE(status.ok()) << status;
    return account.balance;
  }
  static void Put(Step& step, const Table& table, uint64_t key, int64_t balance) {
    const Status status = step->Update(table, key, Account{.balance = balance});
    EXPECT_TRUE(status.ok()) << status;
  }

  Cluster cluster;
  Session& one;
  Session& two;
  int place_of_three;  // the data's node, unless that is another process
  Session& three;
};

TEST_P(IsolationTest, LostUpdate) {
  Step a(one), b(two);
  const int64_t seen_by_a = Get(a, points1(), 0);
  const int64_t seen_by_b = Get(b, points2(), 0);
  Put(a, points1(), 0, seen_by_a + 1);
  Put(b, points2(), 0, seen_by_b + 1);
  EXPECT_TRUE(a.Commit().ok());
  EXPECT_TRUE(absl::IsAborted(b.Commit()));
  Step c(three);
  EXPECT_EQ(Get(c, points3(), 0), 101);
}

TEST_P(IsolationTest, WriteSkew) {
  Step a(one), b(two);
  EXPECT_EQ(Get(a, points1(), 0) + Get(a, points1(), 2), 200);
  EXPECT_EQ(Get(b, points2(), 0) + Get(b, points2(), 2), 200);
  Put(a, points1(), 0, -100);
  Put(b, points2(), 2, -100);
  EXPECT_TRUE(a.Commit().ok());
  EXPECT_TRUE(absl::IsAborted(b.Commit()));
}

TEST_P(IsolationTest, DirtyReadIsImpossible) {
  Step a(one), b(two);
  Put(a, points1(), 0, 7);
  EXPECT_EQ(Get(b, points2(), 0), 100);
  a.Rollback();
  EXPECT_TRUE(b.Commit().ok());
}

TEST_P(IsolationTest, UnrepeatableReadAborts) {
  Step a(one);
  EXPECT_EQ(Get(a, points1(), 0), 100);
  {
    Step b(two);
    Put(b, points2(), 0, 1);
    EXPECT_TRUE(b.Commit().ok());
  }
  EXPECT_EQ(Get(a, points1(), 2), 100);
  EXPECT_TRUE(absl::IsAborted(a.Commit()));
}

// It takes the place before the write, in which it has read everything.
TEST_P(IsolationTest, OneReadAloneIsASnapshot) {
  Step a(one), b(two);
  EXPECT_EQ(Get(a, points1(), 0), 100);
  Put(b, points2(), 0, 7);
  EXPECT_TRUE(b.Commit().ok());
  EXPECT_TRUE(a.Commit().ok());
  Step c(one);
  EXPECT_EQ(Get(c, points1(), 0), 7);
}

// Fekete, O'Neil and O'Neil: a read-only transaction sees a state that no order of the other two explains.
TEST_P(IsolationTest, ReadOnlyAnomaly) {
  Step withdraw(one);
  EXPECT_EQ(Get(withdraw, points1(), 0), 100);
  EXPECT_EQ(Get(withdraw, points1(), 2), 100);
  {
    Step deposit(two);
    Get(deposit, points2(), 2);
    Put(deposit, points2(), 2, 120);
    EXPECT_TRUE(deposit.Commit().ok());
  }
  {
    Step report(three);
    EXPECT_EQ(Get(report, points3(), 0), 100);
    EXPECT_EQ(Get(report, points3(), 2), 120);
    EXPECT_TRUE(report.Commit().ok());
  }
  Put(withdraw, points1(), 0, -11);
  EXPECT_TRUE(absl::IsAborted(withdraw.Commit()));
}

TEST_P(IsolationTest, ReadOnlyTransactionOfTwoStatesAborts) {
  Step report(one);
  EXPECT_EQ(Get(report, points1(), 0), 100);
  {
    Step transfer(two);
    Put(transfer, points2(), 0, 50);
    Put(transfer, points2(), 2, 150);
    EXPECT_TRUE(transfer.Commit().ok());
  }
  EXPECT_EQ(Get(report, points1(), 2), 150);
  EXPECT_TRUE(absl::IsAborted(report.Commit()));
}

TEST_P(IsolationTest, PhantomByInsertIntoAScan) {
  // The insert is within the range, before its first key, after its last key, in an empty range.
  struct Range {
    uint64_t from, to, insert;
  };
  for (const Range& range : {Range{10, 20, 13}, Range{9, 20, 9}, Range{30, 1000, 999}, Range{2000, 3000, 2500}}) {
    ScanRows rows;
    Step a(one);
    ASSERT_TRUE(a->Scan(ordered1(), {.from = range.from, .to = range.to}, &rows).ok());
    {
      Step b(two);
      ASSERT_TRUE(b->Insert(ordered2(), range.insert, Account{.balance = 1}).ok());
      ASSERT_TRUE(b.Commit().ok());
    }
    Put(a, points1(), 0, static_cast<int64_t>(rows.size()));
    EXPECT_TRUE(absl::IsAborted(a.Commit())) << range.insert;
  }
}

TEST_P(IsolationTest, PhantomByRemovalFromAScan) {
  ScanRows rows;
  Step a(one);
  ASSERT_TRUE(a->Scan(ordered1(), {.from = 10, .to = 20}, &rows, {.keys_only = true}).ok());
  {
    Step b(two);
    ASSERT_TRUE(b->Remove(ordered2(), 12).ok());
    ASSERT_TRUE(b.Commit().ok());
  }
  Put(a, points1(), 0, static_cast<int64_t>(rows.size()));
  EXPECT_TRUE(absl::IsAborted(a.Commit()));
}

TEST_P(IsolationTest, PhantomByLimit) {
  // The oldest order: a scan with limit 1 must notice an older one.
  ScanRows rows;
  Step a(one);
  ASSERT_TRUE(a->Scan(ordered1(), {.from = 9, .to = 100, .limit = 1}, &rows).ok());
  ASSERT_EQ(rows.key(0).integer(), 10u);
  {
    Step b(two);
    ASSERT_TRUE(b->Insert(ordered2(), 9, Account{}).ok());
    ASSERT_TRUE(b.Commit().ok());
  }
  Put(a, points1(), 0, 1);
  EXPECT_TRUE(absl::IsAborted(a.Commit()));
}

TEST_P(IsolationTest, MissThenInsertAborts) {
  for (const bool hash : {true, false}) {
    Step a(one);
    Account account;
    EXPECT_TRUE(absl::IsNotFound(a->Get(hash ? points1() : ordered1(), 77, &account)));
    {
      Step b(two);
      ASSERT_TRUE(b->Insert(hash ? points2() : ordered2(), 77, Account{}).ok());
      ASSERT_TRUE(b.Commit().ok());
    }
    Put(a, points1(), 0, 1);
    EXPECT_TRUE(absl::IsAborted(a.Commit()));
  }
}

TEST_P(IsolationTest, OwnInsertsKeepOwnScansValid) {
  Step a(one);
  ScanRows rows;
  ASSERT_TRUE(a->Scan(ordered1(), {.from = 0, .to = 1000}, &rows).ok());
  // There are enough inserts to split the scanned leaves.
  for (uint64_t key = 1; key < 200; key += 2) ASSERT_TRUE(a->Insert(ordered1(), key, Account{.balance = 1}).ok());
  Account account;
  EXPECT_TRUE(absl::IsNotFound(a->Get(points1(), 1, &account)));
  ASSERT_TRUE(a->Insert(points1(), 1, Account{}).ok());
  const Status status = a.Commit();
  EXPECT_TRUE(status.ok()) << status;
}

TEST_P(IsolationTest, ForeignInsertBesideOwnInsertsAborts) {
  Step a(one);
  ScanRows rows;
  ASSERT_TRUE(a->Scan(ordered1(), {.from = 0, .to = 1000}, &rows).ok());
  ASSERT_TRUE(a->Insert(ordered1(), 1, Account{.balance = 1}).ok());
  {
    Step b(two);
    ASSERT_TRUE(b->Insert(ordered2(), 3, Account{}).ok());
    ASSERT_TRUE(b.Commit().ok());
  }
  EXPECT_TRUE(absl::IsAborted(a.Commit()));
}

TEST_P(IsolationTest, InsertersOfOneKeyDoNotBothSucceed) {
  Step a(one), b(two);
  ASSERT_TRUE(a->Insert(points1(), 33, Account{.balance = 1}).ok());
  ASSERT_TRUE(b->Insert(points2(), 33, Account{.balance = 2}).ok());
  EXPECT_TRUE(a.Commit().ok());
  EXPECT_TRUE(absl::IsAlreadyExists(b.Commit()));
  Step c(three);
  EXPECT_EQ(Get(c, points3(), 33), 1);
}

TEST_P(IsolationTest, UpdateOfARemovedRecordAborts) {
  Step a(one);
  Account account;
  StatusOr<RecordHandle> handle = a->GetForUpdate(points1(), 0, &account);
  ASSERT_TRUE(handle.ok());
  {
    Step b(two);
    ASSERT_TRUE(b->Remove(points2(), 0).ok());
    ASSERT_TRUE(b.Commit().ok());
  }
  ASSERT_TRUE(a->Update(*handle, Account{.balance = 5}).ok());
  EXPECT_TRUE(absl::IsAborted(a.Commit()));
  Step c(three);
  EXPECT_TRUE(absl::IsNotFound(c->Get(points3(), 0, &account)));
}

TEST_P(IsolationTest, GotForUpdateButUnchangedIsARead) {
  Step a(one);
  Account account;
  ASSERT_TRUE(a->GetForUpdate(points1(), 0, &account).ok());
  {
    Step b(two);
    Put(b, points2(), 0, 1);
    EXPECT_TRUE(b.Commit().ok());
  }
  Put(a, points1(), 2, 1);
  EXPECT_TRUE(absl::IsAborted(a.Commit()));
}

TEST_P(IsolationTest, AnErrorFromAStaleReadIsNotBelieved) {
  Step a(one);
  EXPECT_EQ(Get(a, points1(), 0), 100);
  {
    Step b(two);
    Put(b, points2(), 0, 1);
    EXPECT_TRUE(b.Commit().ok());
  }
  coro::Async<Status> valid = a.transaction().Validate();
  const Status status = valid.ready() ? valid.value() : one.worker().BlockOn(std::move(valid.task()));
  EXPECT_TRUE(absl::IsAborted(status));
}

// A record that is removed and inserted again at the same place must not be taken for the one that was read.
TEST_P(IsolationTest, ReusedMemoryIsNotTheOldRecord) {
  Step a(one);
  EXPECT_EQ(Get(a, points1(), 0), 100);
  for (int round = 0; round < 50; ++round) {
    ASSERT_TRUE(RunBlockingBody(two, [&](BlockingTransaction& t) { return t.Remove(points2(), 0); }).ok());
    ASSERT_TRUE(RunBlockingBody(two, [&](BlockingTransaction& t) {
                  return t.Insert(points2(), 0, Account{.balance = 100});
                }).ok());
  }
  Put(a, points1(), 2, 1);
  EXPECT_TRUE(absl::IsAborted(a.Commit()));
}

std::string PlacesName(const testing::TestParamInfo<Places>& info) {
  const auto name = [](int node) { return node == 0 ? "Owner" : "Remote"; };
  const std::string places = absl::StrCat(name(std::get<0>(info.param)), "And", name(std::get<1>(info.param)));
  return absl::StrCat(places, "On_", index::EntryOf(std::get<2>(info.param)).name);
}

INSTANTIATE_TEST_SUITE_P(Workers, IsolationTest,
                         testing::Combine(testing::Values(0, 1), testing::Values(0, 1),
                                          testing::ValuesIn(index::OrderedKinds())),
                         PlacesName);

}  // namespace isolation_test
}  // namespace gannet::txn
