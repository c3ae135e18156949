#include "bench/harness/histogram.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"

namespace gannet::bench {
namespace {

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

TEST(HistogramTest, ValuesBeyondTheLastBucketKeepTheirMaximum) {
  Histogram histogram;
  histogram.Record(uint64_t{1} << 60);
  EXPECT_EQ(histogram.max(), uint64_t{1} << 60);
  EXPECT_EQ(histogram.count(), 1u);
  EXPECT_GT(histogram.Percentile(99), uint64_t{1} << 43);
}

}  // namespace
}  // namespace gannet::bench
