// A client dies at each verb of each change of shared leaves (index/shared_leaf/leaf/leaf.h): within 50 ms nothing is
// locked, all keys are as they were, or as the change makes them, and every block of memory is accounted for.
#include "tests/lab/scenario/leaf_death.h"

#include <string>
#include <tuple>

#include "gtest/gtest.h"

namespace gannet::scenario {
namespace leaf_death_test {

enum class Kind : uint8_t { kBlink, kBlinkOfBytes, kRolex, kRolexOfBytes };

class LeafDeathTest : public testing::TestWithParam<std::tuple<Kind, LeafChange>> {
 protected:
  static LeafDeathCase Case() {
    const auto [kind, change] = GetParam();
    const bool bytes = kind == Kind::kBlinkOfBytes || kind == Kind::kRolexOfBytes;
    return {.kind = kind == Kind::kBlink || kind == Kind::kBlinkOfBytes ? txn::HastyBlink() : txn::HastyRolex(),
            .keys = bytes ? index::KeyKind::kBytes : index::KeyKind::kInteger,
            .change = change};
  }
};

INSTANTIATE_TEST_SUITE_P(
    Kinds, LeafDeathTest,
    testing::Combine(testing::Values(Kind::kBlink, Kind::kBlinkOfBytes, Kind::kRolex, Kind::kRolexOfBytes),
                     testing::Values(LeafChange::kInsert, LeafChange::kSplit, LeafChange::kSplitRoot,
                                     LeafChange::kRemove, LeafChange::kAbsorb, LeafChange::kReplace,
                                     LeafChange::kInsertByTransaction)),
    [](const auto& test) {
      const Kind kind = std::get<0>(test.param);
      return std::string(kind == Kind::kBlink          ? "Blink"
                         : kind == Kind::kBlinkOfBytes ? "BlinkOfBytes"
                         : kind == Kind::kRolex        ? "Rolex"
                                                       : "RolexOfBytes") +
             NameOf(std::get<1>(test.param));
    });

TEST_P(LeafDeathTest, LeavesNothing) {
  const LeafDeathCase test = Case();
  if (test.change == LeafChange::kSplitRoot && test.kind == txn::HastyRolex()) {
    GTEST_SKIP() << "no root";
  }
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

}  // namespace leaf_death_test
}  // namespace gannet::scenario
