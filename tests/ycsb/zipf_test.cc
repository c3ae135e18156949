#include "ycsb/zipf.h"

#include <cmath>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace gannet::ycsb {
namespace zipf_test {

// The probability of ranks [first, end) of n, by the definition.
double Mass(double theta, uint64_t n, uint64_t first, uint64_t end) {
  double sum = 0;
  double wanted = 0;
  for (uint64_t r = 0; r < n; ++r) {
    const double p = std::pow(static_cast<double>(r + 1), -theta);
    sum += p;
    if (r >= first && r < end) wanted += p;
  }
  return wanted / sum;
}

class ZipfMass : public ::testing::TestWithParam<double> {};

TEST_P(ZipfMass, OfEveryPartIsThatOfTheFormula) {
  constexpr uint64_t kRanks = 10'000;
  constexpr int kDraws = 400'000;
  const Zipf zipf(GetParam());
  Random random(1);
  std::vector<uint64_t> seen(kRanks);
  for (int i = 0; i < kDraws; ++i) {
    const uint64_t rank = zipf.Draw(kRanks, &random);
    ASSERT_LT(rank, kRanks);
    ++seen[rank];
  }
  for (const auto& [first, end] : std::vector<std::pair<uint64_t, uint64_t>>{
           {0, 1}, {1, 2}, {2, 3}, {3, 10}, {10, 100}, {100, 1000}, {1000, 5000}, {5000, kRanks}}) {
    uint64_t hits = 0;
    for (uint64_t r = first; r < end; ++r) hits += seen[r];
    const double p = Mass(GetParam(), kRanks, first, end);
    // Five standard deviations: one run in a million would fail by chance, but the seed is fixed.
    const double tolerance = 5 * std::sqrt(p * (1 - p) / kDraws);
    EXPECT_NEAR(static_cast<double>(hits) / kDraws, p, tolerance) << "ranks " << first << " to " << end;
  }
}

INSTANTIATE_TEST_SUITE_P(Theta, ZipfMass, ::testing::Values(0.5, 0.99, 1.0, 1.2, 1.74));

TEST(Zipf, OneRankIsAlwaysDrawn) {
  const Zipf zipf(kYcsbTheta);
  Random random(1);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(zipf.Draw(1, &random), 0u);
}

TEST(Zipf, ManyRanksAreAllReachable) {
  constexpr uint64_t kRanks = 100'000'000;
  const Zipf zipf(kYcsbTheta);
  Random random(1);
  uint64_t most = 0;
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t rank = zipf.Draw(kRanks, &random);
    ASSERT_LT(rank, kRanks);
    most = std::max(most, rank);
  }
  EXPECT_GT(most, kRanks / 2);
}

}  // namespace zipf_test
}  // namespace gannet::ycsb
