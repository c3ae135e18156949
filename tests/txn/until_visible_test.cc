// Session::Run with Until::kVisible: it does not wait for the disk, and returns the epoch to wait for.
#include <atomic>
#include <deque>
#include <thread>

#include "tests/txn/durable_cluster.h"
#include "txn/run/session.h"

namespace gannet::txn {
namespace until_visible_test {

// A disk whose writes can be blocked.
class UntilVisibleTest : public ::testing::Test {
 protected:
  void Open(const DatabaseOptions& options = {}, int nodes = 1) {
    auto cluster = DurableCluster::Open(disk_, {HashTable("rows")}, {.nodes = nodes, .database = options});
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    cluster_ = *std::move(cluster);
    session_ = database().OpenSession().value();
  }
  ~UntilVisibleTest() override { LetGo(); }

  void HoldUp() {
    held_.store(true);
    disk_->SetOptions({.before = [this](log::DiskOperation operation, const std::string&) {
      while (operation == log::DiskOperation::kWrite && held_.load()) std::this_thread::yield();
    }});
  }
  void LetGo() { held_.store(false); }

  Database& database() { return cluster_->database(); }
  const Table& rows() { return cluster_->table("rows"); }

  Status Put(uint64_t key, uint64_t value, RunOutcome* outcome) {
    const auto put = [&](Transaction& t) -> coro::Task<Status> {
      uint64_t old = 0;
      StatusOr<RecordHandle> handle = co_await t.GetForUpdate(rows(), key, &old);
      if (absl::IsNotFound(handle.status())) co_return t.Insert(rows(), key, value);
      if (!handle.ok()) co_return handle.status();
      co_return t.Update(*handle, value);
    };
    return session_->worker().BlockOn(session_->Run(put, outcome, Until::kVisible));
  }
  StatusOr<uint64_t> Get(Session& session, uint64_t key, RunOutcome* outcome) {
    uint64_t value = 0;
    const auto get = [&](Transaction& t) -> coro::Task<Status> { co_return co_await t.Get(rows(), key, &value); };
    Status status = session.worker().BlockOn(session.Run(get, outcome, Until::kVisible));
    if (!status.ok()) return status;
    return value;
  }
  static coro::Task<Status> Wait(Session& session, uint64_t epoch) {
    coro::Async<Status> durable = session.WhenDurable(epoch);
    co_return co_await durable;
  }
  Status WhenDurable(uint64_t epoch) { return session_->worker().BlockOn(Wait(*session_, epoch)); }

  std::atomic<bool> held_{false};
  const std::shared_ptr<log::FaultyFileSystem> disk_ = std::make_shared<log::FaultyFileSystem>(1);
  std::unique_ptr<DurableCluster> cluster_;
  std::unique_ptr<Session> session_;
};

TEST_F(UntilVisibleTest, OthersSeeItBeforeItIsDurable) {
  Open();
  HoldUp();
  RunOutcome written;
  ASSERT_TRUE(Put(1, 10, &written).ok());
  EXPECT_GT(written.durable_at, database().durable_epoch());
  // A transaction that reads it depends on it, also if it reads that something is not there.
  std::unique_ptr<Session> other = database().OpenSession().value();
  RunOutcome read;
  EXPECT_EQ(Get(*other, 1, &read).value(), 10u);
  EXPECT_GE(read.durable_at, written.durable_at);
  RunOutcome missed;
  EXPECT_TRUE(absl::IsNotFound(Get(*other, 2, &missed).status()));
  EXPECT_GE(missed.durable_at, written.durable_at);
  LetGo();
  const Status durable = WhenDurable(written.durable_at);
  EXPECT_TRUE(durable.ok()) << durable;
  EXPECT_GE(database().durable_epoch(), written.durable_at);
  EXPECT_EQ(Get(*other, 1, &read).value(), 10u);
  EXPECT_EQ(read.durable_at, 0u);  // nothing is dirty
}

// An error gives information about the database, too: a key exists, or the conclusion of a body.
constexpr absl::StatusCode kErrors[] = {absl::StatusCode::kAlreadyExists,     absl::StatusCode::kNotFound,
                                        absl::StatusCode::kCancelled,         absl::StatusCode::kInternal,
                                        absl::StatusCode::kResourceExhausted, absl::StatusCode::kUnknown,
                                        absl::StatusCode::kUnavailable,       absl::StatusCode::kDeadlineExceeded};

// Finds that `key` is there, and reports it by an error: by Commit's if `code` is AlreadyExists, else by the body's.
Status Complain(Session& session, const Table& rows, uint64_t key, absl::StatusCode code, RunOutcome* outcome,
                Until until = Until::kVisible) {
  const auto complain = [&](Transaction& t) -> coro::Task<Status> {
    if (code == absl::StatusCode::kAlreadyExists) co_return t.Insert(rows, key, uint64_t{0});
    uint64_t value = 0;
    Status status = co_await t.Get(rows, key, &value);
    if (!status.ok()) co_return status;
    co_return Status(code, "it is there");
  };
  return session.worker().BlockOn(session.Run(complain, outcome, until));
}

TEST_F(UntilVisibleTest, AnErrorSaysWhatItWaitsFor) {
  Open({}, 2);
  HoldUp();
  RunOutcome written;
  ASSERT_TRUE(Put(1, 10, &written).ok());
  ASSERT_GT(written.durable_at, database().durable_epoch());
  for (const int node : {0, 1}) {  // node of the session that is told; the row is on node 0
    std::unique_ptr<Session> told = cluster_->database(node).OpenSession().value();
    for (const absl::StatusCode code : kErrors) {
      RunOutcome outcome;
      EXPECT_EQ(Complain(*told, cluster_->table("rows", node), 1, code, &outcome).code(), code);
      EXPECT_GE(outcome.durable_at, written.durable_at) << absl::StatusCodeToString(code) << " at node " << node;
    }
    // An outcome that depends on nothing can be told at once.
    RunOutcome outcome{.durable_at = 1};
    const auto refuse = [](Transaction&) -> coro::Task<Status> { co_return absl::CancelledError(""); };
    EXPECT_TRUE(absl::IsCancelled(told->worker().BlockOn(told->Run(refuse, &outcome, Until::kVisible))));
    EXPECT_EQ(outcome.durable_at, 0u);
  }
  LetGo();
  session_ = nullptr;
}

TEST_F(UntilVisibleTest, AnErrorWaitsAsAnAnswerDoes) {
  Open({.durable_within = absl::Milliseconds(20)});
  HoldUp();
  RunOutcome written;
  ASSERT_TRUE(Put(1, 10, &written).ok());
  std::unique_ptr<Session> other = database().OpenSession().value();
  for (const absl::StatusCode code : kErrors) {
    const Status status = Complain(*other, rows(), 1, code, nullptr, Until::kDurable);
    EXPECT_TRUE(absl::IsUnknown(status)) << status;
    EXPECT_NE(status.message(), "it is there");
  }
  LetGo();
}

// A transaction that has a row for update and inserts its key: the commit returns AlreadyExists, which depends on that
// row.
Status InsertWhatIsHeld(Session& session, const Table& rows, uint64_t key, bool update, RunOutcome* outcome,
                        Until until = Until::kVisible) {
  const auto insert = [&](Transaction& t) -> coro::Task<Status> {
    uint64_t value = 0;
    const StatusOr<RecordHandle> handle = co_await t.GetForUpdate(rows, key, &value);
    if (!handle.ok()) co_return handle.status();
    if (update) {
      Status status = t.Update(*handle, value + 1);
      if (!status.ok()) co_return status;
    }
    Status status = t.Insert(rows, key, value);
    EXPECT_TRUE(status.ok()) << "the operation tells, and not the commit: " << status;
    co_return status;
  };
  return session.worker().BlockOn(session.Run(insert, outcome, until));
}

TEST_F(UntilVisibleTest, AlreadyExistsOfARowThatIsHeldForUpdateSaysWhatItWaitsFor) {
  Open({}, 2);
  HoldUp();
  RunOutcome written;
  ASSERT_TRUE(Put(1, 10, &written).ok());
  ASSERT_GT(written.durable_at, database().durable_epoch());
  for (const int node : {0, 1}) {  // node of the session that is told; the row is on node 0
    std::unique_ptr<Session> told = cluster_->database(node).OpenSession().value();
    for (const bool update : {false, true}) {
      RunOutcome outcome;
      EXPECT_TRUE(absl::IsAlreadyExists(InsertWhatIsHeld(*told, cluster_->table("rows", node), 1, update, &outcome)));
      EXPECT_GE(outcome.durable_at, written.durable_at) << "at node " << node << (update ? ", updated" : "");
    }
  }
  LetGo();
  session_ = nullptr;
}

TEST_F(UntilVisibleTest, AlreadyExistsOfARowThatIsHeldForUpdateWaits) {
  Open({.durable_within = absl::Milliseconds(20)});
  HoldUp();
  RunOutcome written;
  ASSERT_TRUE(Put(1, 10, &written).ok());
  std::unique_ptr<Session> other = database().OpenSession().value();
  for (const bool update : {false, true}) {
    const Status status = InsertWhatIsHeld(*other, rows(), 1, update, nullptr, Until::kDurable);
    EXPECT_TRUE(absl::IsUnknown(status)) << status;
  }
  LetGo();
}

// The power fails as soon as a client has been told.
TEST_F(UntilVisibleTest, WhatAnErrorToldOfSurvives) {
  Open();
  std::unique_ptr<Session> other = database().OpenSession().value();
  uint64_t key = 0;
  for (const absl::StatusCode code : kErrors) {
    RunOutcome written;
    ASSERT_TRUE(Put(++key, 10, &written).ok());
    EXPECT_EQ(Complain(*other, rows(), key, code, nullptr, Until::kDurable).code(), code);
    auto survivor = DurableCluster::Open(disk_->CrashedCopy(key), {HashTable("rows")});
    ASSERT_TRUE(survivor.ok()) << survivor.status();
    uint64_t value = 0;
    const Status found = (*survivor)->database().Run(
        [&](BlockingTransaction& t) { return t.Get((*survivor)->table("rows"), key, &value); });
    EXPECT_TRUE(found.ok()) << found << " after " << absl::StatusCodeToString(code);
  }
}

TEST_F(UntilVisibleTest, WaitingIsBounded) {
  Open({.durable_within = absl::Milliseconds(20)});
  HoldUp();
  RunOutcome written;
  ASSERT_TRUE(Put(1, 10, &written).ok());
  EXPECT_TRUE(absl::IsUnknown(WhenDurable(written.durable_at)));
  LetGo();
}

TEST_F(UntilVisibleTest, WithoutALogThereIsNothingToWaitFor) {
  Open({.durability = DurabilityMode::kNone});
  RunOutcome written;
  ASSERT_TRUE(Put(1, 10, &written).ok());
  EXPECT_EQ(written.durable_at, 0u);
  EXPECT_TRUE(WhenDurable(written.durable_at).ok());
}

// A power cut leaves a prefix that contains everything whose epoch had become durable.
TEST_F(UntilVisibleTest, WhatBecameDurableSurvives) {
  Open();
  uint64_t n = 0;
  uint64_t told = 0;  // everything up to here is durable
  std::deque<RunOutcome> open;
  for (int round = 0; round < 10; ++round) {
    for (const uint64_t last = n + 50; n < last;) {
      ASSERT_TRUE(Put(1, ++n, &open.emplace_back()).ok());
      for (; !open.empty() && open.front().durable_at <= database().durable_epoch(); ++told) open.pop_front();
    }
    const std::shared_ptr<log::FaultyFileSystem> left = disk_->CrashedCopy(static_cast<uint64_t>(round));
    auto survivor = DurableCluster::Open(left, {HashTable("rows")});
    ASSERT_TRUE(survivor.ok()) << survivor.status();
    uint64_t value = 0;
    const Status found = (*survivor)->database().Run(
        [&](BlockingTransaction& t) { return t.Get((*survivor)->table("rows"), uint64_t{1}, &value); });
    EXPECT_TRUE(found.ok() || (absl::IsNotFound(found) && told == 0)) << found;
    EXPECT_GE(value, told);
    EXPECT_LE(value, n);
  }
}

}  // namespace until_visible_test
}  // namespace gannet::txn
