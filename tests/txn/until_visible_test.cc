// Session::Run with Until::kVisible: it does not wait for the disk, and says what is to be waited for.
#include <atomic>
#include <deque>
#include <thread>

#include "tests/txn/durable_cluster.h"

namespace gannet::txn {
namespace {

// A disk whose writes can be held up.
class UntilVisibleTest : public ::testing::Test {
 protected:
  void Open(const DatabaseOptions& options = {}) {
    auto cluster = DurableCluster::Open(disk_, {HashTable("rows")}, {.database = options});
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
  // Whoever reads it depends on it, also who learns from it that something is not there.
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

// What a power cut leaves is a prefix that has everything whose epoch had become durable.
TEST_F(UntilVisibleTest, WhatBecameDurableSurvives) {
  Open();
  uint64_t n = 0;
  uint64_t told = 0;  // up to here all is durable
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

}  // namespace
}  // namespace gannet::txn
