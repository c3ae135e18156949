#include "bench/harness/histogram.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"

namespace gannet::bench {
namespace histogram_test {

TEST(HistogramTest, EmptyIsZero) {
  const Histogram histogram;
  EXPECT_EQ(histogram.count(), 0u);
  EXPECT_EQ(histogram.Percentile(50), 0u);
  EXPECT_EQ(histogram.Percentile(100), 0u);
  EXPECT_EQ(histogram.max(), 0u);
  EXPECT_EQ(histogram.mean(), 0);
}

TEST(HistogramTest, OneValueIsItsOwnPercentile) {
  for (const uint64_t value : {0ull, 1ull, 127ull, 128ull, 129ull, 12'345ull, 1'000'000'007ull, 1ull << 43}) {
    auto histogram = std::make_unique<Histogram>();
    histogram->Record(value);
    const auto got = static_cast<double>(histogram->Percentile(50));
    EXPECT_NEAR(got, static_cast<double>(value), static_cast<double>(value) * 0.01) << value;
    EXPECT_EQ(histogram->max(), value);
  }
}

TEST(HistogramTest, PercentilesAreWithinOnePercentOfTheSortedValues) {
  Random random(1);
  auto histogram = std::make_unique<Histogram>();
  std::vector<uint64_t> values;
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t value = random() >> (24 + random.Below(36));  // many magnitudes
    values.push_back(value);
    histogram->Record(value);
  }
  std::sort(values.begin(), values.end());
  for (const double percent : {0.1, 1.0, 10.0, 50.0, 90.0, 99.0, 99.9}) {
    const auto rank = static_cast<size_t>(std::ceil(percent / 100 * static_cast<double>(values.size())));
    const auto exact = static_cast<double>(values[rank - 1]);
    EXPECT_NEAR(static_cast<double>(histogram->Percentile(percent)), exact, exact * 0.01) << percent;
  }
}

TEST(HistogramTest, MergeIsTheSumOfBoth) {
  Random random(2);
  auto a = std::make_unique<Histogram>(), b = std::make_unique<Histogram>(), both = std::make_unique<Histogram>();
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t value = random.Below(1'000'000);
    (i % 3 == 0 ? a : b)->Record(value);
    both->Record(value);
  }
  a->Merge(*b);
  EXPECT_EQ(a->count(), both->count());
  EXPECT_EQ(a->max(), both->max());
  EXPECT_EQ(a->mean(), both->mean());
  for (int percent = 1; percent <= 100; ++percent) EXPECT_EQ(a->Percentile(percent), both->Percentile(percent));
}

TEST(HistogramTest, SubtractLeavesWhatCameLater) {
  Random random(3);
  auto earlier = std::make_unique<Histogram>(), all = std::make_unique<Histogram>(),
       later = std::make_unique<Histogram>();
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t value = random.Below(1'000'000);
    all->Record(value);
    (i < 5'000 ? earlier : later)->Record(value);
  }
  const bool longest_came_later = later->max() > earlier->max();
  all->Subtract(*earlier);
  EXPECT_EQ(all->count(), later->count());
  EXPECT_EQ(all->mean(), later->mean());
  for (int percent = 1; percent < 100; ++percent) EXPECT_EQ(all->Percentile(percent), later->Percentile(percent));
  const auto longest = static_cast<double>(later->max());
  EXPECT_NEAR(static_cast<double>(all->max()), longest, longest_came_later ? 0 : longest * 0.01);
  const Histogram same = *all;
  all->Subtract(same);
  EXPECT_EQ(all->count(), 0u);
  EXPECT_EQ(all->max(), 0u);
}

TEST(HistogramTest, TheMaximumOfADifferenceIsThatOfItsLastBucketIfALongerValueCameBefore) {
  auto histogram = std::make_unique<Histogram>();
  histogram->Record(5'000'000);
  const Histogram earlier = *histogram;
  histogram->Record(1'000);
  histogram->Subtract(earlier);
  EXPECT_NEAR(static_cast<double>(histogram->max()), 1'000, 10);
}

TEST(HistogramTest, RangesAreAscendingDisjointAndHaveEveryValue) {
  auto histogram = std::make_unique<Histogram>();
  Random random(4);
  std::vector<uint64_t> values = {0, 1, 7, 8, 9, 15, 16, 127, 128, 129, uint64_t{1} << 43};
  for (int i = 0; i < 1'000; ++i) values.push_back(random() >> (24 + random.Below(40)));
  for (const uint64_t value : values) histogram->Record(value);
  uint64_t last_high = 0;
  uint64_t sum = 0;
  histogram->ForEachRange([&](uint64_t low, uint64_t high, uint64_t count) {
    EXPECT_GE(low, last_high);
    EXPECT_LE(high - low, std::max<uint64_t>(1, low / 8));
    last_high = high;
    sum += count;
    EXPECT_EQ(count, static_cast<uint64_t>(std::ranges::count_if(
                         values, [low, high](uint64_t value) { return value >= low && value < high; })))
        << low;
  });
  EXPECT_EQ(sum, values.size());
}

TEST(HistogramTest, ValuesBeyondTheLastBucketKeepTheirMaximum) {
  Histogram histogram;
  histogram.Record(uint64_t{1} << 60);
  EXPECT_EQ(histogram.max(), uint64_t{1} << 60);
  EXPECT_EQ(histogram.count(), 1u);
  EXPECT_GT(histogram.Percentile(99), uint64_t{1} << 43);
}

}  // namespace histogram_test
}  // namespace gannet::bench
