#include "bench/harness/operation_statistics.h"

#include <memory>

#include "gtest/gtest.h"

namespace gannet::bench {
namespace operation_statistics_test {

TEST(OperationStatisticsTest, SumsWorkersAndDividesBySamples) {
  auto one = std::make_unique<OperationStatistics>();
  auto other = std::make_unique<OperationStatistics>();
  auto latency = std::make_unique<Histogram>();
  for (const uint64_t nanos : {10'000, 30'000, 80'000}) latency->Record(nanos);
  one->SampleVerbs({.reads = 3, .bytes_in = 100});
  other->SampleVerbs({.reads = 4});
  other->SampleVerbs({.reads = 1, .calls = 1});
  one->Merge(*other);
  OperationReport report;
  Summarize(*one, *latency, &report);
  EXPECT_DOUBLE_EQ(report.mean_us, 40);
  EXPECT_NEAR(report.p50_us, 30, 0.3);
  EXPECT_NEAR(report.p95_us, 80, 0.8);
  EXPECT_NEAR(report.p99_us, 80, 0.8);
  EXPECT_EQ(report.max_us, 80);
  ASSERT_EQ(report.distribution.size(), 3u);
  EXPECT_LE(report.distribution[1].from_us, 30);
  EXPECT_GT(report.distribution[1].to_us, 30);
  EXPECT_EQ(report.distribution[1].operations, 1u);
  EXPECT_EQ(report.verb_samples, 3u);
  EXPECT_EQ(report.verbs.reads, 8u);
  EXPECT_DOUBLE_EQ(report.PerOperation(report.verbs.reads), 8.0 / 3);
  EXPECT_DOUBLE_EQ(report.PerOperation(report.verbs.bytes_in), 100.0 / 3);
}

TEST(OperationStatisticsTest, NothingIsZero) {
  OperationReport report;
  report.distribution.resize(1);
  Summarize(*std::make_unique<OperationStatistics>(), *std::make_unique<Histogram>(), &report);
  EXPECT_EQ(report.mean_us, 0);
  EXPECT_EQ(report.max_us, 0);
  EXPECT_EQ(report.PerOperation(7), 0);
  EXPECT_TRUE(report.distribution.empty());
}

}  // namespace operation_statistics_test
}  // namespace gannet::bench
