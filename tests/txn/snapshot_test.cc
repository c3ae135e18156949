// Answers that an owner calls a snapshot are one, even if its threads lose their cores between two rows.
#include <string>

#include "gtest/gtest.h"
#include "tests/txn/snapshot_race.h"

namespace gannet::txn {
namespace snapshot_test {

class SnapshotTest : public testing::TestWithParam<SnapshotKind> {};

TEST_P(SnapshotTest, IsAStateOfTheDatabase) {
  SnapshotRace sum;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const SnapshotRace race = SnapshotRaceRun(GetParam(), seed).Run(10'000'000);
    EXPECT_EQ(race.wrong, 0u) << "seed " << seed;
    sum.reads += race.reads;
    sum.validated += race.validated;
    sum.swaps += race.swaps;
  }
  EXPECT_GT(sum.swaps, 1000u);
  // Most are snapshots, and some not.
  EXPECT_GT(sum.reads, 1000u);
  EXPECT_LT(sum.validated, sum.reads / 2);
}

std::string KindName(const testing::TestParamInfo<SnapshotKind>& info) {
  constexpr const char* kNames[] = {"GetMany", "Scan", "Search"};
  return kNames[static_cast<size_t>(info.param)];
}

INSTANTIATE_TEST_SUITE_P(Kinds, SnapshotTest,
                         testing::Values(SnapshotKind::kGetMany, SnapshotKind::kScan, SnapshotKind::kSearch), KindName);

}  // namespace snapshot_test
}  // namespace gannet::txn
