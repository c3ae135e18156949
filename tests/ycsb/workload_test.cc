#include "ycsb/workload.h"

#include <array>
#include <numeric>
#include <string>

#include "gtest/gtest.h"

namespace gannet::ycsb {
namespace workload_test {

TEST(Workload, AllHaveTheirShares) {
  EXPECT_EQ(FindWorkload("a")->mix, (Mix{50, 50, 0, 0, 0}));
  EXPECT_EQ(FindWorkload("b")->mix, (Mix{95, 5, 0, 0, 0}));
  EXPECT_EQ(FindWorkload("c")->mix, (Mix{100, 0, 0, 0, 0}));
  EXPECT_EQ(FindWorkload("d")->mix, (Mix{95, 0, 5, 0, 0}));
  EXPECT_EQ(FindWorkload("e")->mix, (Mix{0, 0, 5, 95, 0}));
  EXPECT_EQ(FindWorkload("f")->mix, (Mix{50, 0, 0, 0, 50}));
  EXPECT_EQ(FindWorkload("d")->distribution, Distribution::kLatest);
  EXPECT_EQ(FindWorkload("load")->mix, (Mix{0, 0, 100, 0, 0}));
  EXPECT_EQ(FindWorkload("update")->mix, (Mix{0, 100, 0, 0, 0}));
  for (const char* wrong : {"g", "", "ab", "A", "l"}) EXPECT_FALSE(FindWorkload(wrong).has_value()) << wrong;
}

TEST(Workload, KindsAreDrawnInTheirShares) {
  constexpr int kDraws = 100'000;
  for (const Workload& workload : kWorkloads) {
    EXPECT_EQ(std::accumulate(workload.mix.begin(), workload.mix.end(), 0), 100);
    Random random(1);
    std::array<int, kKinds> drawn{};
    for (int i = 0; i < kDraws; ++i) ++drawn[static_cast<size_t>(DrawKind(workload.mix, &random))];
    for (size_t k = 0; k < kKinds; ++k) {
      const double share = workload.mix[k] / 100.0;
      EXPECT_NEAR(drawn[k], share * kDraws, share > 0 && share < 1 ? 800 : 0) << workload.name << kKindNames[k];
    }
  }
}

}  // namespace workload_test
}  // namespace gannet::ycsb
