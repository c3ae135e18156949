// The outcome of an attempt: which errors of a body are returned, and the effect of failed operations.
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/cache_line.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rdma/versioned.h"
#include "tests/txn/cluster.h"
#include "tests/txn/table_kinds.h"
#include "txn/run/database_state.h"

namespace gannet::txn {
namespace outcome_test {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr uint64_t kOne = 1;
constexpr uint64_t kTwo = 2;
constexpr uint64_t kNew = 100;

struct OutcomeCase {
  std::string name;
  int node;  // of the session; the data is on node 0
  ReadPathPolicy read_path;
};

class OutcomeTest : public testing::TestWithParam<OutcomeCase> {
 protected:
  OutcomeTest()
      : cluster({.nodes = 2, .read_path = GetParam().read_path},
                {{.name = "points", .payload_bytes = sizeof(Account), .expected_rows = 1000},
                 {.name = "ordered", .index = IndexKind::kXStore, .payload_bytes = sizeof(Account)}}),
        session(cluster.NewSession(GetParam().node)),
        other(cluster.NewSession(0)),
        points(cluster.table(GetParam().node, "points")),
        ordered(cluster.table(GetParam().node, "ordered")) {
    const Status loaded = RunBlockingBody(other, [&](BlockingTransaction& t) -> Status {
      for (const uint64_t key : {kOne, kTwo}) {
        if (Status s = t.Insert(cluster.table(0, "points"), key, Account{.balance = 100}); !s.ok()) return s;
        if (Status s = t.Insert(cluster.table(0, "ordered"), key, Account{.balance = 100}); !s.ok()) return s;
      }
      return absl::OkStatus();
    });
    EXPECT_TRUE(loaded.ok()) << loaded;
  }

  // Moves money from kOne to kTwo, in the middle of another transaction.
  void Transfer(int64_t amount) {
    const Table& table = cluster.table(0, "points");
    const Status status = RunBlockingBody(other, [&](BlockingTransaction& t) -> Status {
      Account one, two;
      if (Status s = t.Get(table, kOne, &one); !s.ok()) return s;
      if (Status s = t.Get(table, kTwo, &two); !s.ok()) return s;
      one.balance -= amount;
      two.balance += amount;
      if (Status s = t.Update(table, kOne, one); !s.ok()) return s;
      return t.Update(table, kTwo, two);
    });
    EXPECT_TRUE(status.ok()) << status;
  }

  // The record of `key` is locked while this lives, as by a slow transaction.
  class Locked {
   public:
    Locked(Cluster* cluster, const std::string& table, uint64_t key) {
      const index::FindResult found = cluster->table(0, table).local_index().Find(key);
      record_ = cluster->databases[0]->state().node->memory().data() + found.record.offset();
      StoreWord(record_, LoadWord(record_) | rdma::kLockBit);
    }
    ~Locked() { StoreWord(record_, LoadWord(record_) & ~rdma::kLockBit); }

   private:
    std::byte* record_;
  };

  Status Validated(Step& step) {
    coro::Async<Status> validated = step.transaction().Validate();
    return validated.ready() ? validated.value() : session.worker().BlockOn(std::move(validated.task()));
  }

  bool Exists(uint64_t key) {
    Step step(other);
    Account account;
    return step->Get(cluster.table(0, "points"), key, &account).ok();
  }

  Cluster cluster;
  Session& session;
  Session& other;
  const Table& points;
  const Table& ordered;
};

// All codes that a user's program may choose.
const std::vector<absl::StatusCode> kCodes = {
    absl::StatusCode::kCancelled,         absl::StatusCode::kUnknown,     absl::StatusCode::kInvalidArgument,
    absl::StatusCode::kDeadlineExceeded,  absl::StatusCode::kNotFound,    absl::StatusCode::kAlreadyExists,
    absl::StatusCode::kPermissionDenied,  absl::StatusCode::kUnavailable, absl::StatusCode::kInternal,
    absl::StatusCode::kResourceExhausted, absl::StatusCode::kOutOfRange,  absl::StatusCode::kFailedPrecondition,
    absl::StatusCode::kUnimplemented,     absl::StatusCode::kDataLoss,    absl::StatusCode::kUnauthenticated};

TEST_P(OutcomeTest, AnErrorAboutAStateThatNeverWasIsNotBelieved) {
  for (const absl::StatusCode code : kCodes) {
    int attempts = 0;
    const auto audit = [&](Transaction& t) -> coro::Task<Status> {
      Account one, two;
      Status status = co_await t.Get(points, kOne, &one);
      if (!status.ok()) co_return status;
      if (++attempts == 1) Transfer(10);
      status = co_await t.Get(points, kTwo, &two);
      if (!status.ok()) co_return status;
      if (one.balance + two.balance != 200) co_return Status(code, "money was made");
      co_return absl::OkStatus();
    };
    RunOutcome outcome;
    const Status status = session.RunBlocking(audit, &outcome);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(attempts, 2) << absl::StatusCodeToString(code);
    EXPECT_EQ(outcome.aborts, 1u);
  }
}

TEST_P(OutcomeTest, AnErrorAboutAStateThatWasIsReturnedAsItIs) {
  for (const absl::StatusCode code : kCodes) {
    int attempts = 0;
    const auto find = [&](Transaction& t) -> coro::Task<Status> {
      ++attempts;
      Account one;
      Status status = co_await t.Get(points, kOne, &one);
      if (!status.ok()) co_return status;
      status = t.Insert(points, kNew, Account{});
      if (!status.ok()) co_return status;
      co_return Status(code, "as it is");
    };
    const Status status = session.RunBlocking(find);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_EQ(status.message(), "as it is");
    EXPECT_EQ(attempts, 1);
    EXPECT_FALSE(Exists(kNew));
  }
}

TEST_P(OutcomeTest, AConflictSaysSoAndAllocatesNothing) {
  const auto told = [](const Status& status) {
    EXPECT_TRUE(absl::IsAborted(status)) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(StartsWith("conflict with another"), EndsWith("run it again")));
    return status.message().data();
  };
  // The places where the messages lie of conflicts in reads, in validations, and in commits that write and that do not.
  std::vector<const char*> messages;
  Account account;
  for (const Table* table : {&points, &ordered}) {
    const Locked locked(&cluster, std::string(table->name()), kOne);
    Step t(session);
    messages.push_back(told(t->Get(*table, kOne, &account)));
    messages.push_back(told(t.Commit()));
    if (!table->index_traits().ordered) continue;
    ScanRows rows;
    Step scan(session);
    messages.push_back(told(scan->Scan(*table, {.from = kOne, .to = kTwo}, &rows)));
  }
  for (const bool validates : {true, false}) {
    for (const bool writes : {true, false}) {
      Step t(session);
      EXPECT_TRUE(t->Get(points, kOne, &account).ok());
      EXPECT_TRUE(t->Get(points, kTwo, &account).ok());
      if (writes) {
        EXPECT_TRUE(t->Update(points, kOne, account).ok());
      }
      Transfer(1);
      messages.push_back(told(validates ? Validated(t) : t.Commit()));
    }
  }
  const std::set<const char*> places(messages.begin(), messages.end());
  const std::set<std::string> texts(messages.begin(), messages.end());
  EXPECT_EQ(places.size(), texts.size()) << "a message is made more than once";
  EXPECT_THAT(texts, Contains(HasSubstr("locked a record")));
  EXPECT_THAT(texts, Contains(HasSubstr("changed a row")));
  const TransactionStatistics counted = session.database().transaction_statistics();
  EXPECT_GT(counted.aborts[static_cast<size_t>(AbortCause::kLock)], 0u);
  EXPECT_GT(counted.aborts[static_cast<size_t>(AbortCause::kRow)], 0u);
}

TEST_P(OutcomeTest, ABodyThatReturnsAbortedRunsAgain) {
  int attempts = 0;
  const auto body = [&](Transaction& t) -> coro::Task<Status> {
    Account one;
    Status status = co_await t.Get(points, kOne, &one);
    if (!status.ok()) co_return status;
    co_return ++attempts < 3 ? absl::AbortedError("not yet") : absl::OkStatus();
  };
  RunOutcome outcome;
  const Status status = session.RunBlocking(body, &outcome);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(attempts, 3);
  EXPECT_EQ(outcome.aborts, 2u);
}

// Each operation, by hand, on a locked record: later operations fail, too, and nothing is committed.
TEST_P(OutcomeTest, WhatFailedStaysFailed) {
  using Operation = std::function<Status(Step&)>;
  Account account;
  ScanRows rows;
  GetRequest request;
  const std::vector<std::pair<std::string, Operation>> operations = {
      {"Get", [&](Step& step) { return step->Get(points, kOne, &account); }},
      {"GetForUpdate", [&](Step& step) { return step->GetForUpdate(points, kOne, &account).status(); }},
      {"GetMany",
       [&](Step& step) {
         request = GetRequest::Of(points, kOne, &account);
         Status status = step->GetMany(std::span(&request, 1));
         EXPECT_EQ(request.status, status);
         return status;
       }},
      {"Update", [&](Step& step) { return step->Update(points, kOne, Account{}); }},
      {"Remove", [&](Step& step) { return step->Remove(points, kOne); }},
      {"Scan", [&](Step& step) { return step->Scan(ordered, {.from = 0, .to = 10}, &rows); }},
  };
  const Locked point(&cluster, "points", kOne);
  const Locked row(&cluster, "ordered", kOne);
  for (const auto& [name, operation] : operations) {
    Step step(session);
    EXPECT_TRUE(step->Insert(points, kNew, Account{}).ok());
    const StatusOr<RecordHandle> two = step->GetForUpdate(points, kTwo, &account);
    ASSERT_TRUE(two.ok()) << two.status();
    const Status failure = operation(step);
    EXPECT_TRUE(absl::IsAborted(failure)) << name << ": " << failure;
    for (const auto& [next_name, next] : operations) EXPECT_EQ(next(step), failure) << next_name << " after " << name;
    EXPECT_EQ(step->Get(points, kTwo, &account), failure) << name;
    EXPECT_EQ(step->Insert(points, kNew + 1, Account{}), failure) << name;
    EXPECT_EQ(step->Update(*two, Account{}), failure) << name;
    EXPECT_EQ(step->transaction().Remove(*two), failure) << name;
    EXPECT_EQ(step.Commit(), failure) << name;
    EXPECT_FALSE(Exists(kNew)) << name;
  }
}

// A body that ignores all statuses.
TEST_P(OutcomeTest, ABodyThatIgnoresAFailureDoesNotCommit) {
  int attempts = 0;
  const Status status = [&] {
    auto locked = std::make_unique<Locked>(&cluster, "points", kOne);
    const auto body = [&](Transaction& t) -> coro::Task<Status> {
      if (++attempts == 2) {
        EXPECT_FALSE(Exists(kNew));
        locked = nullptr;
      }
      Account one{.balance = -1};
      Status ignored = co_await t.Get(points, kOne, &one);
      ignored = t.Insert(points, kNew, one);
      // In the first two attempts the operations return Aborted, and the body returns something else.
      co_return attempts == 1 ? absl::InternalError("what is this?") : absl::OkStatus();
    };
    return session.RunBlocking(body);
  }();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(attempts, 2);
  Step step(other);
  Account made;
  ASSERT_TRUE(step->Get(cluster.table(0, "points"), kNew, &made).ok());
  EXPECT_EQ(made.balance, 100);
}

TEST_P(OutcomeTest, AResultIsNoFailure) {
  Step step(session);
  Account account;
  EXPECT_TRUE(absl::IsNotFound(step->Get(points, 77, &account)));
  EXPECT_EQ(step->Get(points, std::string_view("text"), &account).code(), absl::StatusCode::kInvalidArgument);
  std::array<std::byte, 4096> large;
  EXPECT_EQ(step->Get(points, kOne, std::span(large)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(step->Get(points, kOne, std::span(large), 0).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(step->Insert(points, kNew, std::span(large)).code(), absl::StatusCode::kInvalidArgument);
  ScanRows rows;
  EXPECT_EQ(step->Scan(points, {.from = 0, .to = 10}, &rows).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::IsNotFound(step->Remove(points, 77)));
  EXPECT_TRUE(step->Insert(points, kNew, Account{}).ok());
  EXPECT_TRUE(step.Commit().ok());
  EXPECT_TRUE(Exists(kNew));
}

TEST_P(OutcomeTest, ATransactionThatIsOverRefusesEverything) {
  Step step(session);
  Account account;
  EXPECT_TRUE(step->Insert(points, kNew, Account{}).ok());
  EXPECT_TRUE(step.Commit().ok());
  constexpr auto kRefused = absl::StatusCode::kFailedPrecondition;
  GetRequest request = GetRequest::Of(points, kOne, &account);
  ScanRows rows;
  EXPECT_EQ(step.Commit().code(), kRefused);
  EXPECT_EQ(step->Get(points, kOne, &account).code(), kRefused);
  EXPECT_EQ(step->GetMany(std::span(&request, 1)).code(), kRefused);
  EXPECT_EQ(request.status.code(), kRefused);
  EXPECT_EQ(step->GetForUpdate(points, kOne, &account).status().code(), kRefused);
  EXPECT_EQ(step->Update(points, kOne, account).code(), kRefused);
  EXPECT_EQ(step->Insert(points, kNew + 1, account).code(), kRefused);
  EXPECT_EQ(step->Remove(points, kOne).code(), kRefused);
  EXPECT_EQ(step->transaction().Remove(RecordHandle{0}).code(), kRefused);
  EXPECT_EQ(step->Scan(ordered, {.from = 0, .to = 10}, &rows).code(), kRefused);
  coro::Async<Status> valid = step.transaction().Validate();
  ASSERT_TRUE(valid.ready());
  EXPECT_EQ(valid.value().code(), kRefused);
  step.Rollback();
  EXPECT_TRUE(Exists(kNew));
}

TEST_P(OutcomeTest, ABodyNeitherCommitsNorRollsBackItself) {
  for (const bool commits : {true, false}) {
    int attempts = 0;
    const auto body = [&](Transaction& t) -> coro::Task<Status> {
      ++attempts;
      Status status = t.Insert(points, kNew, Account{});
      if (!status.ok()) co_return status;
      if (commits) {
        status = co_await t.Commit();
        EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
      } else {
        t.Rollback();
      }
      status = t.Insert(points, kNew + 1, Account{});
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
      co_return absl::OkStatus();
    };
    const Status status = session.RunBlocking(body);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_EQ(attempts, 1);
    const Status blocking = cluster.databases[GetParam().node]->Run([&](BlockingTransaction& t) -> Status {
      EXPECT_TRUE(t.Insert(points, kNew, Account{}).ok());
      commits ? static_cast<void>(t.transaction().Commit()) : t.transaction().Rollback();
      return absl::OkStatus();
    });
    EXPECT_EQ(blocking.code(), absl::StatusCode::kFailedPrecondition) << blocking;
    EXPECT_FALSE(Exists(kNew));
  }
}

struct Broke {
  int64_t balance;
};

// Counts its instances, so that a test sees that a coroutine's variables are destroyed.
struct Counted {
  explicit Counted(int* counter) : live(counter) { ++*live; }
  ~Counted() { --*live; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  int* live;
};

TEST_P(OutcomeTest, AnExceptionRollsBackAndLeavesRun) {
  int live = 0;
  const auto withdraw = [&](Transaction& t, int64_t amount) -> coro::Task<Status> {
    const Counted counted(&live);
    Account one;
    StatusOr<RecordHandle> handle = co_await t.GetForUpdate(points, kOne, &one);
    if (!handle.ok()) co_return handle.status();
    one.balance -= amount;
    if (Status s = t.Update(*handle, one); !s.ok()) co_return s;
    if (one.balance < 0) throw Broke{one.balance};
    co_return absl::OkStatus();
  };
  const auto body = [&](Transaction& t) -> coro::Task<Status> {
    const Counted counted(&live);
    if (Status s = t.Insert(points, kNew, Account{}); !s.ok()) co_return s;
    Status status = co_await withdraw(t, 1000);
    ADD_FAILURE() << "it goes on after an exception";
    co_return status;
  };
  for (int i = 0; i < 3; ++i) {
    try {
      const Status status = session.RunBlocking(body);
      ADD_FAILURE() << status;
    } catch (const Broke& broke) {
      EXPECT_EQ(broke.balance, -900);
    }
    EXPECT_EQ(live, 0);
    EXPECT_FALSE(Exists(kNew));
  }
  Database& database = *cluster.databases[GetParam().node];
  for (int i = 0; i < 200; ++i) {  // more than the largest number of sessions
    EXPECT_THROW(static_cast<void>(database.Run([&](BlockingTransaction& t) -> Status {
                   EXPECT_TRUE(t.Insert(points, kNew, Account{}).ok());
                   throw Broke{1};
                 })),
                 Broke);
  }
  EXPECT_FALSE(Exists(kNew));
  // Nothing is locked, and the sessions are usable.
  const auto less = [&](Transaction& t) -> coro::Task<Status> { co_return co_await withdraw(t, 10); };
  EXPECT_TRUE(session.RunBlocking(less).ok());
  Transfer(0);
}

// One coroutine of several throws: the one that awaits its Run catches the exception, the others do not notice it.
TEST_P(OutcomeTest, AnExceptionGoesToTheCoroutineThatAwaits) {
  int caught = 0;
  int committed = 0;
  const auto client = [&](uint64_t number) -> coro::Task<void> {
    for (uint64_t i = 0; i < 20; ++i) {
      const auto body = [&](Transaction& t) -> coro::Task<Status> {
        Account two;
        Status status = co_await t.Get(points, kTwo, &two);
        if (!status.ok()) co_return status;
        status = t.Insert(points, kNew + 100 * number + i, two);
        if (status.ok() && number == 0) throw Broke{two.balance};
        co_return status;
      };
      try {
        const Status status = co_await session.Run(body);
        EXPECT_TRUE(status.ok()) << status;
        ++committed;
      } catch (const Broke&) {
        ++caught;
      }
    }
  };
  for (uint64_t number = 0; number < 4; ++number) session.worker().Spawn(client(number));
  session.worker().Run();
  EXPECT_EQ(caught, 20);
  EXPECT_EQ(committed, 60);
}

// An exception about a state that never was, or after a failure, does not leave Run either.
TEST_P(OutcomeTest, AnExceptionIsBelievedAsAnErrorIs) {
  int attempts = 0;
  const auto audit = [&](Transaction& t) -> coro::Task<Status> {
    Account one, two;
    Status status = co_await t.Get(points, kOne, &one);
    if (!status.ok()) co_return status;
    if (++attempts == 1) Transfer(10);
    status = co_await t.Get(points, kTwo, &two);
    if (!status.ok()) co_return status;
    if (one.balance + two.balance != 200) throw Broke{0};
    co_return absl::OkStatus();
  };
  EXPECT_TRUE(session.RunBlocking(audit).ok());
  EXPECT_EQ(attempts, 2);

  attempts = 0;
  auto locked = std::make_unique<Locked>(&cluster, "points", kOne);
  const Status status = cluster.databases[GetParam().node]->Run([&](BlockingTransaction& t) -> Status {
    if (++attempts == 2) locked = nullptr;
    Account one;
    if (const Status s = t.Get(points, kOne, &one); !s.ok()) throw Broke{0};
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(attempts, 2);
}

TEST_P(OutcomeTest, ASessionHasAnyNumberOfTransactions) {
  constexpr uint64_t kTransactions = 1000;
  std::vector<std::unique_ptr<Step>> steps;
  for (uint64_t i = 0; i < kTransactions; ++i) {
    Step& step = *steps.emplace_back(std::make_unique<Step>(session));
    Account account;
    ASSERT_TRUE(step->Get(points, kOne, &account).ok());
    ASSERT_TRUE(step->Insert(points, kNew + i, account).ok());
  }
  for (const std::unique_ptr<Step>& step : steps) {
    const Status status = step->Commit();
    ASSERT_TRUE(status.ok()) << status;
  }
  EXPECT_TRUE(Exists(kNew + kTransactions - 1));
}

// A write by its key does not contradict what its transaction has read: it is a conflict.
TEST_P(OutcomeTest, AWriteThatMeetsSomethingElseThanWasReadIsAConflict) {
  const std::vector<TableOptions> tables = AllKinds(sizeof(uint64_t), /*variable_length=*/false);
  const int node = GetParam().node;
  Cluster kinds({.nodes = node + 1, .read_path = GetParam().read_path}, tables);
  Session& mine = kinds.NewSession(node);
  Session& theirs = kinds.NewSession(0);
  const auto conflict = [](const Status& met, Step* step) {
    EXPECT_TRUE(met.ok() || absl::IsAborted(met)) << met;  // Ok: it has looked at its own write alone
    EXPECT_TRUE(absl::IsAborted(step->Commit()));
  };
  for (const TableOptions& options : tables) {
    SCOPED_TRACE(options.name);
    const Table& table = kinds.table(node, options.name);
    const index::OwnedKey owned = KeyOf(options, 1);
    const index::Key key = owned.view();
    const auto insert = [&] {
      const Status inserted = RunBlockingBody(
          theirs, [&](BlockingTransaction& t) { return t.Insert(kinds.table(0, options.name), key, kOne); });
      EXPECT_TRUE(inserted.ok()) << inserted;
    };
    const auto remove = [&] {
      const Status removed =
          RunBlockingBody(theirs, [&](BlockingTransaction& t) { return t.Remove(kinds.table(0, options.name), key); });
      EXPECT_TRUE(removed.ok()) << removed;
    };
    using Write = Status (*)(Step & step, const Table& table, const index::Key& key);
    for (const Write write : {
             Write([](Step&step, const Table&t, const index::Key&k) { return step->Remove(t, k); }),
             Write([](Step&step, const Table&t, const index::Key&k) { return step->Update(t, k, kTwo); }),
             Write([](Step&step, const Table&t, const index::Key&k) { return step->Add(t, k, kOne); }),
             Write([](Step&step, const Table&t, const index::Key&k) {
               return step->UpdateIf(t, k, kOne, kTwo).status();
             }),
         }) {
      for (const bool updates : {false, true}) {
        insert();
        Step step(mine);
        uint64_t value = 0;
        const Status read = updates ? step->Update(table, key, kTwo) : step->Get(table, key, &value);
        EXPECT_TRUE(read.ok()) << read;
        remove();
        conflict(write(step, table, key), &step);
      }
      Step step(mine);
      const Status missing = write(step, table, key);
      EXPECT_TRUE(absl::IsNotFound(missing)) << missing;
      EXPECT_TRUE(absl::IsNotFound(write(step, table, key))) << "nothing has changed";
      EXPECT_TRUE(step.Commit().ok());
    }
    {
      Step step(mine);
      EXPECT_TRUE(step->Upsert(table, key, kOne).ok());
      insert();
      EXPECT_TRUE(step->Remove(table, key).ok()) << "theirs";
      conflict(step->Upsert(table, key, kTwo), &step);
    }
    remove();
    {
      Step step(mine);
      uint64_t value = 0;
      EXPECT_TRUE(absl::IsNotFound(step->Get(table, key, &value)));
      insert();
      step->Insert(table, key, kTwo).IgnoreError();
      EXPECT_TRUE(absl::IsAborted(step.Commit()));
    }
    {
      Step step(mine);
      EXPECT_TRUE(step->Insert(table, key, kTwo).ok());
      EXPECT_TRUE(step->Remove(table, key).ok()) << "theirs";
      const Status exists = step->Upsert(table, key, kTwo);
      EXPECT_TRUE(absl::IsAlreadyExists(exists)) << exists << ": it would run again for ever as a conflict";
      EXPECT_TRUE(absl::IsAlreadyExists(step.Commit()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Places, OutcomeTest,
                         testing::Values(OutcomeCase{"Own", 0, ReadPathPolicy::kOneSided},
                                         OutcomeCase{"Reads", 1, ReadPathPolicy::kOneSided},
                                         OutcomeCase{"Calls", 1, ReadPathPolicy::kCall}),
                         [](const auto& test) { return test.param.name; });

}  // namespace outcome_test
}  // namespace gannet::txn
