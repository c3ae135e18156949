// A client dies at each verb of each change of shared leaves (index/shared_leaf/leaf/leaf.h): within 50 ms nothing is
// locked, all keys are as they were, or as the change makes them, and every block of memory is accounted for. The same
// while a client of another node works in these leaves: all that it does succeeds, and its keys are as it has left
// them.
#include "tests/lab/scenario/leaf_death.h"

#include <string>
#include <tuple>

#include "gtest/gtest.h"
#include "tests/index/kinds.h"
#include "tests/support/thorough.h"

namespace gannet::scenario {
namespace leaf_death_test {

using index::IndexKind;
using index::KeyKind;

class LeafDeathTest : public testing::TestWithParam<std::tuple<IndexKind, KeyKind, LeafChange>> {
 protected:
  static LeafDeathCase Case() {
    const auto [kind, keys, change] = GetParam();
    return {.kind = txn::HastyKind(kind), .keys = keys, .change = change};
  }
  // Only a leaf of some kinds is a root.
  static bool CanBe(const LeafDeathCase& test) {
    return test.change != LeafChange::kSplitRoot ||
           (test.kind != txn::HastyRolex() && test.kind != txn::HastyDolphin());
  }
};

std::string NameOfCase(const testing::TestParamInfo<std::tuple<IndexKind, KeyKind, LeafChange>>& test) {
  const auto& [kind, keys, change] = test.param;
  return index::EntryOf(kind).name + (keys == KeyKind::kInteger ? "Integers" : "Bytes") + NameOf(change);
}

INSTANTIATE_TEST_SUITE_P(Kinds, LeafDeathTest,
                         testing::Combine(testing::ValuesIn(index::KindsThatClientsChange()),
                                          testing::Values(KeyKind::kInteger, KeyKind::kBytes),
                                          testing::Values(LeafChange::kInsert, LeafChange::kSplit,
                                                          LeafChange::kSplitRoot, LeafChange::kRemove,
                                                          LeafChange::kAbsorb, LeafChange::kReplace,
                                                          LeafChange::kInsertByTransaction)),
                         NameOfCase);

TEST_P(LeafDeathTest, LeavesNothing) {
  const LeafDeathCase test = Case();
  if (!CanBe(test)) GTEST_SKIP() << "no leaf is a root";
  uint64_t verbs = 1;
  for (;; ++verbs) {
    LeafDeath death(test);
    const bool died = death.DieAfter(verbs);
    ASSERT_EQ(death.WhatIsWrong(), "") << "after " << verbs << " verbs";
    if (!died || HasFailure()) break;
  }
  EXPECT_GE(verbs, 4u) << "a READ, a lock and two lines at least";
  std::printf("%d verbs\n", static_cast<int>(verbs - 1));
}

TEST_P(LeafDeathTest, LeavesNothingWhileAnotherClientWorks) {
  LeafDeathCase test = Case();
  if (!CanBe(test)) GTEST_SKIP() << "no leaf is a root";
  int deaths = 0;
  int changes = 0;
  for (const BusyNeighbour::By by : {BusyNeighbour::By::kTransactions, BusyNeighbour::By::kVerbs}) {
    test.neighbour = by;
    // With each second seed both clients insert one key.
    for (test.seed = 1; test.seed <= (IsThorough() ? 4 : 2); ++test.seed) {
      const uint64_t step = StepOfPlaces(6);
      for (uint64_t verbs = 1 + test.seed % step;; verbs += step) {
        LeafDeath death(test);
        const bool died = death.DieAfter(verbs);
        ASSERT_EQ(death.WhatIsWrong(), "") << "after " << verbs << " verbs, seed " << test.seed << ", by "
                                           << (by == BusyNeighbour::By::kVerbs ? "verbs" : "transactions");
        changes += death.changes_of_neighbour();
        if (!died || HasFailure()) break;
        ++deaths;
      }
    }
  }
  EXPECT_GE(changes, 8 * deaths);
  EXPECT_GE(deaths, IsThorough() ? 20 : 4);
  std::printf("%d deaths, %d changes by the other client\n", deaths, changes);
}

}  // namespace leaf_death_test
}  // namespace gannet::scenario
