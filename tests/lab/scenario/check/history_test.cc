#include "lab/scenario/check/history.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/lab/scenario/check/script.h"

namespace gannet::scenario {
namespace history_test {

using ::testing::ElementsAre;

std::vector<AccessKind> KindsOf(const History& history, OperationId op) {
  std::vector<AccessKind> kinds;
  for (const Access& access : history.accesses(op)) kinds.push_back(access.kind);
  return kinds;
}

TEST(History, KeepsOperationsAsTheyEnd) {
  History history;
  const OperationId a = history.Invoke(1, 10);
  const OperationId b = history.Invoke(2, 11);
  history.draft(b).Read(kX, 5);
  history.draft(a).Insert(kY, 6);
  history.Complete(b, 12, Outcome::kOk);
  EXPECT_EQ(history.operation(a).outcome, Outcome::kInfo);
  EXPECT_EQ(history.operation(a).completed, kNever);
  EXPECT_THAT(KindsOf(history, a), ElementsAre(AccessKind::kRead, AccessKind::kWrite));
  history.Complete(a, 13, Outcome::kFail);
  EXPECT_EQ(history.operation(a).completed, 13u);
  EXPECT_EQ(history.operation(a).outcome, Outcome::kFail);
  EXPECT_THAT(KindsOf(history, a), ElementsAre(AccessKind::kRead, AccessKind::kWrite));
  EXPECT_THAT(KindsOf(history, b), ElementsAre(AccessKind::kRead));
  EXPECT_EQ(history.operation(b).client, 2u);
  // A reused draft begins empty.
  const OperationId c = history.Invoke(3, 14);
  EXPECT_TRUE(history.accesses(c).empty());
}

TEST(History, AnAttemptThatIsRepeatedKeepsOnlyItsAbandonedWrites) {
  History history;
  const OperationId op = history.Invoke(1, 10);
  Draft& draft = history.BeginAttempt(op, 10);
  Modify(draft, kX, 1, 2);
  draft.BeginScan({});
  draft.Row(kY.key, 7);
  Modify(history.BeginAttempt(op, 20), kX, 1, 3);
  EXPECT_THAT(KindsOf(history, op), ElementsAre(AccessKind::kAbandoned, AccessKind::kRead, AccessKind::kWrite));
  EXPECT_EQ(history.operation(op).invoked, 20u);
  history.BeginAttempt(op, 30);
  EXPECT_THAT(KindsOf(history, op), ElementsAre(AccessKind::kAbandoned, AccessKind::kAbandoned));
}

TEST(History, ALimitCutsTheRange) {
  History history;
  const OperationId op = history.Invoke(1, 10);
  Draft& draft = history.draft(op);
  for (const bool reverse : {false, true}) {
    draft.BeginScan({.table = 3, .from = 10, .to = 90, .reverse = reverse, .limit = 2});
    draft.Row(reverse ? 70 : 20, 1);
    draft.Row(reverse ? 60 : 30, 2);
    draft.EndScan();
  }
  draft.BeginScan({.from = 10, .to = 90, .limit = 2});
  EXPECT_EQ(history.accesses(op).size(), 6u);  // without the open scan
  draft.EndScan();
  const std::span<const Access> accesses = history.accesses(op);
  EXPECT_EQ(accesses[0].key, 10u);
  EXPECT_EQ(accesses[0].id, 30u);
  EXPECT_EQ(accesses[0].version, 2u);
  EXPECT_EQ(accesses[3].key, 60u);
  EXPECT_EQ(accesses[3].id, 90u);
  EXPECT_EQ(accesses[6].key, 10u);
  EXPECT_EQ(accesses[6].id, 90u);
  EXPECT_EQ(accesses[6].version, 0u);
}

TEST(History, WriteIdsCountFromOne) {
  History history;
  EXPECT_EQ(history.NextWriteId(), 1u);
  EXPECT_EQ(history.NextWriteId(), 2u);
}

}  // namespace history_test
}  // namespace gannet::scenario
