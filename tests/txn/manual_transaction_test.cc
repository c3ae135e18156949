// Transactions that a blocking program begins and commits itself: Database::Begin.
#include "txn/run/manual_transaction.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "txn/database.h"

namespace gannet::txn {
namespace manual_transaction_test {

class ManualTransactionTest : public testing::Test {
 protected:
  void Open(DatabaseOptions options = {}) {
    options.memory_bytes = uint64_t{128} << 20;
    database_ = Database::OpenInMemory(options).value();
    rows_ = database_->CreateTable({.name = "rows", .payload_bytes = sizeof(uint64_t)}).value();
    ASSERT_TRUE(database_->Start().ok());
    ASSERT_TRUE(database_->Run([&](auto& t) { return t.Insert(*rows_, 1, uint64_t{10}); }).ok());
  }

  ManualTransaction Begin() { return database_->Begin().value(); }

  uint64_t Row() {
    uint64_t row = 0;
    EXPECT_TRUE(database_->Run([&](auto& t) { return t.Get(*rows_, 1, &row); }).ok());
    return row;
  }

  // Reads the row, lets another transaction add 100 to it, and commits one more than it read.
  Status AddInConflict(ManualTransaction& t) {
    uint64_t row = 0;
    GANNET_RETURN_IF_ERROR(t->Get(*rows_, 1, &row));
    GANNET_RETURN_IF_ERROR(database_->Run([&](auto& other) { return other.Add(*rows_, 1, uint64_t{100}); }));
    GANNET_RETURN_IF_ERROR(t->Update(*rows_, 1, row + 1));
    return t.Commit();
  }

  std::unique_ptr<Database> database_;
  const Table* rows_ = nullptr;
};

TEST_F(ManualTransactionTest, CommitsOnce) {
  Open();
  ManualTransaction t = Begin();
  EXPECT_TRUE(t->Add(*rows_, 1, uint64_t{5}).ok());
  EXPECT_EQ(Row(), 10u);
  EXPECT_TRUE(t.Commit().ok());
  EXPECT_EQ(Row(), 15u);

  EXPECT_TRUE(absl::IsFailedPrecondition(t.Commit()));
  EXPECT_TRUE(absl::IsFailedPrecondition(t->Add(*rows_, 1, uint64_t{5})));
  t.Rollback();  // begins another one
  EXPECT_TRUE(t->Add(*rows_, 1, uint64_t{5}).ok());
  EXPECT_TRUE(t.Commit().ok());
  EXPECT_EQ(Row(), 20u);
}

TEST_F(ManualTransactionTest, RollbackAndDestructionDropItsWrites) {
  Open();
  {
    ManualTransaction t = Begin();
    EXPECT_TRUE(t->Remove(*rows_, 1).ok());
    t.Rollback();
    EXPECT_TRUE(t->Exists(*rows_, 1).value());
    EXPECT_TRUE(t->Remove(*rows_, 1).ok());
    ManualTransaction moved = std::move(t);
    EXPECT_FALSE(moved->Exists(*rows_, 1).value());
  }
  EXPECT_EQ(Row(), 10u);
}

TEST_F(ManualTransactionTest, TriesAgainAfterAConflictOnly) {
  Open();
  ManualTransaction t = Begin();
  const Status lost = AddInConflict(t);
  EXPECT_TRUE(absl::IsAborted(lost)) << lost;
  EXPECT_NE(lost.message().find("', key 1: conflict with another transaction"), absl::string_view::npos) << lost;
  EXPECT_FALSE(t.TryAgain(absl::OkStatus()));
  EXPECT_FALSE(t.TryAgain(absl::NotFoundError("")));
  EXPECT_TRUE(absl::IsFailedPrecondition(t->Add(*rows_, 1, uint64_t{1})));  // they did not begin it again
  EXPECT_TRUE(t.TryAgain(lost));
  EXPECT_TRUE(t->Add(*rows_, 1, uint64_t{1}).ok());
  EXPECT_TRUE(t.Commit().ok());
  EXPECT_EQ(Row(), 111u);
}

// A transaction that loses again and again gets precedence, as one of Run. Others then wait for it; here the other one
// is of the same thread, so it waits until the limit, and the commit that it precedes is lost once more.
TEST_F(ManualTransactionTest, GetsPrecedenceWhenItLosesForTooLong) {
  Open({.precedence_limit = absl::Milliseconds(50), .precedence_after = absl::ZeroDuration()});
  ManualTransaction t = Begin();
  int attempts = 0;
  for (Status status = AddInConflict(t); t.TryAgain(status) && database_->precedence_statistics().asked == 0;
       status = AddInConflict(t)) {
    ASSERT_LT(++attempts, 100);
  }
  EXPECT_EQ(database_->precedence_statistics().asked, 1u);
  EXPECT_TRUE(t->Add(*rows_, 1, uint64_t{1}).ok());
  EXPECT_TRUE(t.Commit().ok());
}

TEST_F(ManualTransactionTest, HoldsASessionUntilItIsDestroyed) {
  Open({.run_sessions = 1, .durable_within = absl::Milliseconds(5)});
  {
    ManualTransaction t = Begin();
    EXPECT_TRUE(absl::IsResourceExhausted(database_->Begin().status()));
    EXPECT_TRUE(absl::IsFailedPrecondition(database_->Close()));
    EXPECT_TRUE(t.Commit().ok());
    EXPECT_TRUE(absl::IsResourceExhausted(database_->Begin().status()));
  }
  EXPECT_TRUE(database_->Begin().ok());
  EXPECT_TRUE(database_->Close().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(database_->Begin().status()));
}

TEST(ManualTransactionBeforeStartTest, BeginIsRefused) {
  auto database = Database::OpenInMemory({.memory_bytes = uint64_t{64} << 20});
  ASSERT_TRUE(database.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition((*database)->Begin().status()));
}

}  // namespace manual_transaction_test
}  // namespace gannet::txn
