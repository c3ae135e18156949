#include "bench/harness/operation_statistics.h"

#include <memory>

#include "gtest/gtest.h"

namespace gannet::bench {
namespace {

TEST(OperationStatisticsTest, SumsWorkersAndDividesBySamples) {
  auto one = std::make_unique<OperationStatistics>();
  auto other = std::make_unique<OperationStatistics>();
  one->latency.Record(10'000);
  one->latency.Record(30'000);
  one->SampleVerbs({.reads = 3, .bytes_in = 100});
  other->latency.Record(80'000);
  other->SampleVerbs({.reads = 4});
  other->SampleVerbs({.reads = 1, .calls = 1});
  one->Merge(*other);
  OperationReport report;
  Summarize(*one, &report);
  EXPECT_DOUBLE_EQ(report.mean_us, 40);
  EXPECT_NEAR(report.p50_us, 30, 0.3);
  EXPECT_NEAR(report.p99_us, 80, 0.8);
  EXPECT_EQ(report.max_us, 80);
  EXPECT_EQ(report.verb_samples, 3u);
  EXPECT_EQ(report.verbs.reads, 8u);
  EXPECT_DOUBLE_EQ(report.PerOperation(report.verbs.reads), 8.0 / 3);
  EXPECT_DOUBLE_EQ(report.PerOperation(report.verbs.bytes_in), 100.0 / 3);
}

TEST(OperationStatisticsTest, NothingIsZero) {
  OperationReport report;
  Summarize(*std::make_unique<OperationStatistics>(), &report);
  EXPECT_EQ(report.mean_us, 0);
  EXPECT_EQ(report.max_us, 0);
  EXPECT_EQ(report.PerOperation(7), 0);
}

}  // namespace
}  // namespace gannet::bench
