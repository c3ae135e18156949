// A node dies while others use its records: no thread hangs, no dead node keeps a lock, and each outcome is reported
// correctly.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "index/index.h"
#include "index/record_header.h"
#include "index/registry.h"
#include "tests/index/kinds.h"
#include "tests/txn/cluster.h"
#include "txn/record/record.h"
#include "txn/run/manual_transaction.h"

namespace gannet::txn {
namespace death_test {

Placement Spread() {
  return {.owner = [](const index::Key& key, int n) { return static_cast<rdma::NodeId>(key.integer() % n); },
          .range_owner = [](const index::Key&, const index::Key&, int) { return Placement::kSeveralNodes; }};
}

class DeathTest : public testing::TestWithParam<IndexKind> {
 protected:
  DeathTest()
      : cluster({.nodes = 2},
                {{.name = "points", .payload_bytes = sizeof(Account), .expected_rows = 1000, .placement = Spread()},
                 {.name = "ordered", .index = GetParam(), .payload_bytes = sizeof(Account), .placement = Spread()}}),
        survivor(cluster.NewSession(0)),
        points(cluster.table(0, "points")),
        ordered(cluster.table(0, "ordered")) {
    const Status loaded = RunBlockingBody(survivor, [&](BlockingTransaction& t) -> Status {
      for (uint64_t key = 0; key < 100; ++key) {
        if (Status s = t.Insert(points, key, Account{.balance = 100}); !s.ok()) return s;
        if (Status s = t.Insert(ordered, key, Account{.balance = 100}); !s.ok()) return s;
      }
      return absl::OkStatus();
    });
    EXPECT_TRUE(loaded.ok()) << loaded;
  }

  // Own records (even keys) must be unlocked and usable.
  void ExpectOwnRecordsUsable() {
    const Status status = RunBlockingBody(survivor, [&](BlockingTransaction& t) -> Status {
      for (uint64_t key = 0; key < 100; key += 2) {
        if (Status s = t.Update(points, key, Account{.balance = 1}); !s.ok()) return s;
        if (Status s = t.Update(ordered, key, Account{.balance = 1}); !s.ok()) return s;
      }
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
  }

  struct Lock {
    std::byte* word;
    uint64_t before;
  };
  // Node 0 knows node 1, which locks a row of it.
  Lock LockByVictim(const Table& table) {
    const Table& of_victim = cluster.table(1, table.name());
    const Status known = RunBlockingBody(cluster.NewSession(1), [&](BlockingTransaction& t) {
      return t.Update(of_victim, kLocked, Account{.balance = 100});
    });
    EXPECT_TRUE(known.ok()) << known;
    const index::FindResult found = table.local_index().Find(Key(kLocked));
    EXPECT_FALSE(found.record.is_null());
    std::byte* const word = survivor.channel().Local(found.record);
    const uint64_t before = LoadWord(word);
    StoreWord(word, Locked(before, OwnerBits(1, 3)));
    return {.word = word, .before = before};
  }

  static constexpr uint64_t kLocked = 4;
  Cluster cluster;
  Session& survivor;
  const Table& points;
  const Table& ordered;
};

TEST_P(DeathTest, ReadsOfADeadNodeAreUnavailable) {
  cluster.Kill(1);
  Account account;
  ScanRows rows;
  // Each access has its own transaction: a failed one does nothing more.
  EXPECT_TRUE(absl::IsUnavailable(Step(survivor)->Get(points, 1, &account)));
  EXPECT_TRUE(absl::IsUnavailable(Step(survivor)->Get(ordered, 1, &account)));
  EXPECT_TRUE(absl::IsUnavailable(Step(survivor)->Scan(ordered, {.from = 0, .to = 10}, &rows)));
  EXPECT_TRUE(Step(survivor)->Get(points, 2, &account).ok());
}

TEST_P(DeathTest, DeathBeforeTheCommitPointUndoesWhatWasDoneHere) {
  for (const bool insert : {false, true}) {  // the second round begins with the node dead
    Step step(survivor);
    ASSERT_TRUE(step->Update(points, 0, Account{.balance = 7}).ok());
    ASSERT_TRUE(step->Insert(points, 1000, Account{.balance = 7}).ok());
    if (insert) {
      ASSERT_TRUE(step->Insert(points, 1001, Account{.balance = 7}).ok());
    } else {
      ASSERT_TRUE(step->Update(points, 1, Account{.balance = 7}).ok());
      cluster.Kill(1);
    }
    const Status status = step.Commit();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    // A lock that could not be given back at once is a pending operation: until it is settled, others are told to run
    // again.
    Account account;
    Account inserted;
    const Status read = RunBlockingBody(survivor, [&](BlockingTransaction& t) {
      const Status own = t.Get(points, 0, &account);
      return own.ok() ? t.Get(points, 1000, &inserted) : own;
    });
    EXPECT_TRUE(absl::IsNotFound(read)) << read;
    EXPECT_EQ(account.balance, 100);
  }
  ExpectOwnRecordsUsable();
}

TEST_P(DeathTest, ALockOfADeadWorkerIsReleased) {
  const Lock lock = LockByVictim(points);
  cluster.Kill(1);
  Account account;
  Status status = absl::AbortedError("");
  for (int attempt = 0; attempt < 100'000 && absl::IsAborted(status); ++attempt) {
    status = Step(survivor)->Get(points, kLocked, &account);
    SleepForNanos(1'000'000);
  }
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(LoadWord(lock.word), lock.before);
  EXPECT_EQ(account.balance, 100);
  ExpectOwnRecordsUsable();
}

TEST_P(DeathTest, RunWaitsForTheReleaseOfADeadWorkersLocks) {
  LockByVictim(points);
  LockByVictim(ordered);
  cluster.Kill(1);
  const Status run = cluster.databases[0]->Run([&](BlockingTransaction& t) -> Status {
    Account account;
    GANNET_RETURN_IF_ERROR(t.Get(ordered, kLocked, &account));
    return t.Update(points, kLocked, Account{.balance = 1});
  });
  EXPECT_TRUE(run.ok()) << run;
}

TEST_P(DeathTest, ATransactionByHandWaitsForTheReleaseOfADeadWorkersLock) {
  LockByVictim(points);
  cluster.Kill(1);
  StatusOr<ManualTransaction> t = cluster.databases[0]->Begin();
  ASSERT_TRUE(t.ok()) << t.status();
  Status status;
  do {
    status = (*t)->Update(points, kLocked, Account{.balance = 1});
    if (status.ok()) status = t->Commit();
  } while (t->TryAgain(status));
  EXPECT_TRUE(status.ok()) << status;
}

TEST_P(DeathTest, DeathInTheMiddleOfTransfersLeavesNoLockHere) {
  std::atomic<bool> dead{false};
  std::atomic<uint64_t> committed{0}, after_death{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    Session& session = cluster.NewSession(0);
    threads.emplace_back([&, i] {
      Random random(static_cast<uint64_t>(i) + 1);
      // Runs until some transactions have met the death; the number of transactions is bounded.
      for (int n = 0; n < 200000 && after_death < 20; ++n) {
        const uint64_t a = random.Below(100), b = random.Below(100);
        const Status status = session.RunBlocking([&](Transaction& t) -> coro::Task<Status> {
          return [](Transaction& tx, const Table& table, uint64_t from, uint64_t to) -> coro::Task<Status> {
            Account x, y;
            StatusOr<RecordHandle> hx = co_await tx.GetForUpdate(table, from, &x);
            if (!hx.ok()) co_return hx.status();
            StatusOr<RecordHandle> hy = co_await tx.GetForUpdate(table, to, &y);
            if (!hy.ok()) co_return hy.status();
            --x.balance, ++y.balance;
            Status s = tx.Update(*hx, x);
            if (s.ok()) s = tx.Update(*hy, y);
            co_return s;
          }(t, points, a, b);
        });
        if (status.ok()) {
          ++committed;
        } else {
          EXPECT_TRUE(absl::IsUnavailable(status) || absl::IsUnknown(status)) << status;
          EXPECT_TRUE(dead.load());
          ++after_death;
        }
      }
    });
  }
  while (committed < 50) std::this_thread::yield();
  dead = true;
  cluster.Kill(1);
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(after_death, 20u);
  ExpectOwnRecordsUsable();
}

INSTANTIATE_TEST_SUITE_P(Indexes, DeathTest, testing::ValuesIn(index::OrderedKinds()),
                         [](const auto& kind) { return index::EntryOf(kind.param).name; });

}  // namespace death_test
}  // namespace gannet::txn
