// The judge of crash tests must find errors: here it gets wrong messages.
#include "lab/scenario/crash/judge.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lab/scenario/crash/append_judge.h"
#include "lab/scenario/crash/load.h"
#include "lab/scenario/crash/operation.h"
#include "lab/scenario/crash/tables.h"
#include "log/file/kill_point.h"

namespace gannet::scenario::crash {
namespace judge_test {

using ::testing::HasSubstr;
using enum MessageKind;

CrashOptions OptionsOf(WorkloadKind workload, txn::DurabilityMode mode = txn::DurabilityMode::kSync) {
  CrashOptions options;
  options.workload = workload;
  options.mode = mode;
  options.threads = 1;
  options.coroutines = 2;
  return options;
}

// The rows of worker 0 after its first `operations`, as a child would send them.
std::vector<Message> KvRows(uint64_t operations) {
  std::map<std::tuple<uint64_t, uint64_t>, uint64_t> rows;
  for (uint64_t n = 1; n <= operations; ++n) {
    for (const KvChange& change : KvOperation(/*seed=*/1, 0, n)) {
      if (change.remove) {
        rows.erase({change.table, change.key});
      } else {
        rows[{change.table, change.key}] = change.content;
      }
    }
  }
  std::vector<Message> messages;
  for (const auto& [key, content] : rows) {
    messages.push_back({.kind = kRow, .a = std::get<0>(key), .b = std::get<1>(key), .c = content});
  }
  return messages;
}

class JudgeTest : public ::testing::Test {
 protected:
  explicit JudgeTest(const CrashOptions& options = OptionsOf(WorkloadKind::kKv)) : judge_(Judge::Make(options)) {}

  Status Tell(const std::vector<Message>& messages) {
    for (const Message& message : messages) GANNET_RETURN_IF_ERROR(judge_->Take(message));
    return absl::OkStatus();
  }
  // Worker 0 began `begun` operations; the first `acknowledged` of them were acknowledged.
  void Work(uint64_t acknowledged, uint64_t begun) {
    for (uint64_t n = 1; n <= begun; ++n) {
      ASSERT_TRUE(judge_->Take({.kind = kBegun, .number = n}).ok());
      if (n > acknowledged) continue;
      ASSERT_TRUE(judge_->Take({.kind = kAcknowledged, .number = n}).ok());
    }
    judge_->ChildDied();
  }
  // A child that recovered `operations` of worker 0 reports that, with these rows.
  Status Recover(uint64_t operations, const std::vector<Message>& rows) {
    GANNET_RETURN_IF_ERROR(judge_->Take({.kind = kCounter, .number = operations}));
    GANNET_RETURN_IF_ERROR(Tell(rows));
    const uint64_t told = rows.size() + 1;
    return judge_->Take({.kind = kStateEnd, .number = told, .a = told});
  }

  std::unique_ptr<Judge> judge_;
};

class AsyncJudgeTest : public JudgeTest {
 protected:
  AsyncJudgeTest() : JudgeTest(OptionsOf(WorkloadKind::kKv, txn::DurabilityMode::kAsync)) {}
};

class BankJudgeTest : public JudgeTest {
 protected:
  BankJudgeTest() : JudgeTest(OptionsOf(WorkloadKind::kBank)) {}

  // The rows after the first transfer of worker 0.
  static std::vector<Message> Rows() {
    const Transfer transfer = BankOperation(1, 0, 1);
    std::vector<Message> rows;
    for (uint64_t a = 0; a < kAccounts; ++a) {
      const int64_t moved = a == transfer.from ? -transfer.amount : a == transfer.to ? transfer.amount : 0;
      rows.push_back({.kind = kRow, .a = kBalances, .b = a, .c = static_cast<uint64_t>(kOpeningBalance + moved)});
      rows.push_back({.kind = kRow, .a = kMoves, .b = a, .c = moved == 0 ? 0u : 1u});
    }
    rows.push_back({.kind = kRow, .a = kJournal, .b = 1, .c = ContentOf(transfer)});
    return rows;
  }
};

TEST_F(JudgeTest, AnyPrefixFromTheAcknowledgedToTheBegunIsRight) {
  Work(5, 7);
  EXPECT_TRUE(Recover(6, KvRows(6)).ok());
  EXPECT_EQ(judge_->statistics().recovered_unacknowledged, 1u);
  EXPECT_TRUE(Recover(6, KvRows(6)).ok()) << "once more";
}

TEST_F(JudgeTest, AnAcknowledgedOperationThatIsGoneIsFound) {
  Work(5, 7);
  const Status status = Recover(4, KvRows(4));
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("operation 5 was acknowledged"));
}

TEST_F(JudgeTest, AnOperationThatAReaderSawMustStay) {
  Work(0, 7);
  ASSERT_TRUE(judge_->Take({.kind = kObserved, .number = 6}).ok());
  EXPECT_TRUE(absl::IsDataLoss(Recover(5, KvRows(5))));
}

TEST_F(JudgeTest, AnOperationThatNobodyBeganIsFound) {
  Work(5, 7);
  EXPECT_TRUE(absl::IsDataLoss(Recover(8, KvRows(8))));
}

TEST_F(JudgeTest, WhatWasRecoveredOnceMustStay) {
  Work(5, 7);
  ASSERT_TRUE(Recover(7, KvRows(7)).ok());
  judge_->ChildDied();
  EXPECT_TRUE(absl::IsDataLoss(Recover(6, KvRows(6))));
}

TEST_F(JudgeTest, AHalfOperationIsFound) {
  Work(7, 7);
  std::vector<Message> rows = KvRows(7);
  rows.pop_back();
  EXPECT_TRUE(absl::IsDataLoss(Recover(7, rows)));
}

TEST_F(JudgeTest, AnOldContentIsFound) {
  Work(7, 7);
  std::vector<Message> rows = KvRows(7);
  ++rows.front().c;
  EXPECT_TRUE(absl::IsDataLoss(Recover(7, rows)));
}

TEST_F(JudgeTest, ARowTooManyIsFound) {
  Work(1, 1);
  std::vector<Message> rows = KvRows(1);
  rows.push_back({.kind = kRow, .worker = 1, .a = kHashTable, .b = 3, .c = 1});
  EXPECT_TRUE(absl::IsDataLoss(Recover(1, rows)));
}

TEST_F(JudgeTest, AKeyThatOnlyTheIndexKnowsIsFound) {
  EXPECT_TRUE(absl::IsDataLoss(judge_->Take({.kind = kStateEnd, .number = 1, .a = 0})));
}

TEST_F(JudgeTest, AStateThatWasNotToldToItsEndCountsForNothing) {
  Work(5, 7);
  ASSERT_TRUE(judge_->Take({.kind = kCounter, .number = 1}).ok());
  judge_->ChildDied();
  EXPECT_TRUE(Recover(5, KvRows(5)).ok());
}

TEST_F(AsyncJudgeTest, MayLoseTheEndButNotWhatWasRecovered) {
  Work(5, 7);
  EXPECT_TRUE(Recover(3, KvRows(3)).ok());
  EXPECT_EQ(judge_->statistics().lost, 2u);
  judge_->ChildDied();
  EXPECT_TRUE(absl::IsDataLoss(Recover(2, KvRows(2))));
}

TEST_F(AsyncJudgeTest, MayLoseWhatWasAcknowledgedAfterTheLastThatWasDurable) {
  for (uint64_t n = 1; n <= 5; ++n) {
    ASSERT_TRUE(judge_->Take({.kind = kAcknowledged, .number = n, .a = 1'000'000 * n}).ok());
    if (n != 4) continue;
    ASSERT_TRUE(judge_->Take({.kind = kDurable, .number = 2}).ok());
  }
  judge_->ChildDied();
  EXPECT_TRUE(Recover(2, KvRows(2)).ok());
  EXPECT_EQ(judge_->statistics().lost, 3u);
  EXPECT_EQ(judge_->statistics().longest_loss_nanos, 2'000'000u) << "from the third to the fifth";
  EXPECT_EQ(judge_->statistics().durable_reports, 1u);
}

TEST_F(AsyncJudgeTest, ADurableOperationThatIsGoneIsFound) {
  ASSERT_TRUE(judge_->Take({.kind = kDurable, .number = 4}).ok());
  Work(5, 7);
  const Status status = Recover(3, KvRows(3));
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("operation 4 was durable, as the log had said"));
}

TEST_F(AsyncJudgeTest, MeasuresEachCrashByItself) {
  ASSERT_TRUE(judge_->Take({.kind = kAcknowledged, .number = 1, .a = 9'000'000}).ok());
  judge_->ChildDied();
  ASSERT_TRUE(Recover(1, KvRows(1)).ok());
  EXPECT_EQ(judge_->statistics().longest_loss_nanos, 0u) << "nothing was lost";
  ASSERT_TRUE(judge_->Take({.kind = kAcknowledged, .number = 2, .a = 3'000'000}).ok());
  ASSERT_TRUE(judge_->Take({.kind = kAcknowledged, .number = 3, .a = 3'500'000}).ok());
  judge_->ChildDied();
  ASSERT_TRUE(Recover(1, KvRows(1)).ok());
  EXPECT_EQ(judge_->statistics().longest_loss_nanos, 500'000u);
}

TEST_F(BankJudgeTest, ABankAfterOneTransferIsRight) {
  Work(1, 1);
  EXPECT_TRUE(Recover(1, Rows()).ok());
}

TEST_F(BankJudgeTest, MoneyOutOfNothingIsFound) {
  Work(1, 1);
  std::vector<Message> rows = Rows();
  ++rows.front().c;
  EXPECT_TRUE(absl::IsDataLoss(Recover(1, rows)));
}

TEST_F(BankJudgeTest, AJournalWithoutItsEntryIsFound) {
  Work(1, 1);
  std::vector<Message> rows = Rows();
  rows.pop_back();
  EXPECT_TRUE(absl::IsDataLoss(Recover(1, rows)));
}

TEST_F(BankJudgeTest, AMissingAccountIsFound) {
  Work(1, 1);
  std::vector<Message> rows = Rows();
  rows.erase(std::find_if(rows.begin(), rows.end(), [](const Message& m) {
    return m.a == kBalances && m.c == static_cast<uint64_t>(kOpeningBalance);
  }));
  EXPECT_TRUE(absl::IsDataLoss(Recover(1, rows)));
}

class AppendJudgeTest : public JudgeTest {
 protected:
  AppendJudgeTest() : JudgeTest(OptionsOf(WorkloadKind::kAppend)) {}

  Status Append(uint32_t worker, uint64_t list, uint64_t value) {
    return Tell({{.kind = kAppendBegun, .worker = worker, .number = 1},
                 {.kind = kMicroOp, .worker = worker, .number = 1, .a = list, .b = value}});
  }
  Status Acknowledge(uint32_t worker) { return judge_->Take({.kind = kAppendOver, .worker = worker, .number = 1}); }
  // The read returns at most five values.
  Status Read(uint32_t worker, uint64_t list, std::vector<uint64_t> values) {
    const uint64_t size = values.size();
    values.resize(6);
    return Tell({{.kind = kAppendBegun, .worker = worker, .number = 1},
                 {.kind = kMicroOp, .worker = worker, .number = 0, .a = list},
                 {.kind = kList, .worker = worker, .number = size, .a = values[0], .b = values[1], .c = values[2]},
                 {.kind = kListMore, .worker = worker, .a = values[3], .b = values[4], .c = values[5]},
                 {.kind = kAppendOver, .worker = worker, .number = 1}});
  }
};

TEST_F(AppendJudgeTest, AnAppendOfUnknownOutcomeMayBeThereOrNot) {
  for (const uint64_t list : {0, 1}) {
    ASSERT_TRUE(Append(0, list, 1).ok());
    ASSERT_TRUE(Acknowledge(0).ok());
    ASSERT_TRUE(Append(0, list, 2).ok());
    judge_->ChildDied();
    ASSERT_TRUE(Read(2, list, list == 0 ? std::vector<uint64_t>{1} : std::vector<uint64_t>{1, 2}).ok());
  }
  const Status judged = judge_->Finish();
  EXPECT_TRUE(judged.ok()) << judged;
  EXPECT_THAT(judge_->Verdict(), HasSubstr("6 transactions is strictly serializable"));
}

TEST_F(AppendJudgeTest, AnAcknowledgedAppendThatIsGoneIsFound) {
  ASSERT_TRUE(Append(0, 0, 1).ok());
  ASSERT_TRUE(Acknowledge(0).ok());
  judge_->ChildDied();
  ASSERT_TRUE(Read(2, 0, {}).ok());
  EXPECT_TRUE(absl::IsDataLoss(judge_->Finish()));
}

TEST_F(AppendJudgeTest, AnAppendThatWasSeenAndIsGoneIsFound) {
  ASSERT_TRUE(Append(0, 0, 1).ok());
  ASSERT_TRUE(Read(1, 0, {1}).ok());
  judge_->ChildDied();
  ASSERT_TRUE(Read(2, 0, {}).ok());
  EXPECT_TRUE(absl::IsDataLoss(judge_->Finish()));
}

TEST_F(AppendJudgeTest, AListInAnotherOrderIsFound) {
  for (uint64_t value = 1; value <= 5; ++value) {
    ASSERT_TRUE(Append(0, 0, value).ok());
    ASSERT_TRUE(Acknowledge(0).ok());
  }
  ASSERT_TRUE(Read(1, 0, {1, 2, 3, 4, 5}).ok());
  judge_->ChildDied();
  ASSERT_TRUE(Read(2, 0, {1, 2, 4, 3, 5}).ok());
  const Status judged = judge_->Finish();
  EXPECT_THAT(std::string(judged.message()), HasSubstr("neither is a prefix of the other"));
}

TEST_F(AppendJudgeTest, TellsTheNextChildWhichListsTheOneBeforeMayHaveChanged) {
  EXPECT_EQ(judge_->ListsToTell(false), (KeyRange{0, 0}));
  ASSERT_TRUE(Append(0, 3 * kListSlots + 5, 1).ok());
  ASSERT_TRUE(judge_->Take({.kind = kStateEnd}).ok());
  EXPECT_EQ(judge_->ListsToTell(false), (KeyRange{48, 64}));
  ASSERT_TRUE(Append(0, 3 * kListSlots + 6, 2).ok());
  ASSERT_TRUE(Append(1, 5 * kListSlots, 3).ok());
  EXPECT_EQ(judge_->ListsToTell(false), (KeyRange{48, 96}));
  EXPECT_EQ(judge_->ListsToTell(true), (KeyRange{0, 96}));
}

class LoadJudgeTest : public JudgeTest {
 protected:
  static constexpr uint64_t kTable = 3;
  static constexpr uint32_t kLoad = 7;

  LoadJudgeTest() : JudgeTest(OptionsOf(WorkloadKind::kLoad)) {
    EXPECT_TRUE(judge_->Take({.kind = kLoadBegun, .number = kLoad, .a = kTable, .b = 0}).ok());
  }
  // All rows of the load after operation 1 of worker 0, which changed row `changed`.
  static std::vector<Message> Rows(uint64_t changed = kLoadRows) {
    std::vector<Message> rows;
    for (uint64_t key = 0; key < kLoadRows; ++key) {
      const LoadRow row{.load = kLoad, .number = key == changed ? 1u : 0u};
      rows.push_back({.kind = kRow, .worker = WorkerOfLoadRow(key, 2), .a = kTable, .b = key, .c = row.content()});
    }
    return rows;
  }
  void Change(uint64_t key) {
    ASSERT_TRUE(judge_->Take({.kind = kTouches, .number = 1, .a = kTable, .b = key, .c = kLoad}).ok());
    Work(1, 1);
  }
};

TEST_F(LoadJudgeTest, ALoadMayBeThereOrNotUntilItIsSaved) {
  EXPECT_TRUE(Recover(0, {}).ok());
  ASSERT_TRUE(judge_->Take({.kind = kLoadBegun, .number = kLoad, .a = kTable, .b = 0}).ok());
  const Status there = Recover(0, Rows());
  EXPECT_TRUE(there.ok()) << there;
  EXPECT_TRUE(absl::IsDataLoss(Recover(0, {}))) << "it was recovered before";
}

TEST_F(LoadJudgeTest, APartOfALoadIsFound) {
  std::vector<Message> rows = Rows();
  rows.pop_back();
  EXPECT_THAT(std::string(Recover(0, rows).message()), HasSubstr("has 399 of the 400 rows"));
}

TEST_F(LoadJudgeTest, ASavedLoadThatIsGoneIsFound) {
  ASSERT_TRUE(judge_->Take({.kind = kLoadSaved, .number = kLoad, .a = kTable, .b = 0}).ok());
  EXPECT_THAT(std::string(Recover(0, {}).message()), HasSubstr("a checkpoint was taken after it"));
}

TEST_F(LoadJudgeTest, AChangeThatOutlivesItsLoadIsFound) {
  Change(1);
  EXPECT_THAT(std::string(Recover(1, {}).message()), HasSubstr("operation 1 of worker 0 changed its row 1"));
}

TEST_F(LoadJudgeTest, AChangeThatIsLostIsFound) {
  Change(1);
  EXPECT_TRUE(absl::IsDataLoss(Recover(1, Rows())));
}

TEST_F(LoadJudgeTest, ALoadWithItsChangeIsRight) {
  Change(1);
  const Status status = Recover(1, Rows(/*changed=*/1));
  EXPECT_TRUE(status.ok()) << status;
}

TEST(KvPayload, TellsItsContentAndWhetherItIsWhole) {
  for (const uint64_t content : {uint64_t{0}, uint64_t{224}, uint64_t{0x123456789abcdef}}) {
    std::string payload = PayloadOf(content);
    ASSERT_LE(payload.size(), kMostPayloadBytes);
    const auto bytes = [&] { return std::as_bytes(std::span(payload.data(), payload.size())); };
    EXPECT_EQ(ContentOf(bytes()), content);
    payload.push_back('x');
    EXPECT_EQ(ContentOf(bytes()), kBrokenContent);
  }
}

TEST(CyclePlan, EveryKillPointIsInEvery32Cycles) {
  CrashOptions options;
  options.seed = 5;
  for (uint64_t round = 0; round < 3; ++round) {
    std::set<std::string> seen;
    int in_recovery = 0;
    for (uint64_t cycle = 32 * round; cycle < 32 * (round + 1); ++cycle) {
      const CyclePlan plan = PlanCycle(options, cycle);
      EXPECT_EQ(Describe(plan), Describe(PlanCycle(options, cycle))) << "a pure function";
      seen.insert(plan.kill_point);
      in_recovery += plan.kill_in_recovery ? 1 : 0;
    }
    for (const std::string_view point : log::KillPointNames()) EXPECT_TRUE(seen.contains(std::string(point))) << point;
    EXPECT_TRUE(seen.contains("")) << "by the clock";
    EXPECT_GT(in_recovery, 0);
  }
}

}  // namespace judge_test
}  // namespace gannet::scenario::crash
