#include "base/metrics.h"

#include <cmath>
#include <limits>

#include "base/duration_histogram.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gannet {
namespace metrics_test {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(MetricsTest, TextHasEveryFamily) {
  MetricFamily calls{.name = "calls_total", .help = "Calls.", .type = MetricType::kCounter};
  calls.Add(3, {{"method", "get"}, {"path", "a\\b"}});
  calls.Add(1e15, {{"method", "two\nlines"}, {"path", "\"quoted\""}});
  MetricFamily share{.name = "share", .help = "A share,\nin \\ lines."};
  share.Add(0.1);
  EXPECT_EQ(MetricsToText({calls, share, {.name = "none", .help = "Of nothing."}}),
            "# HELP calls_total Calls.\n"
            "# TYPE calls_total counter\n"
            "calls_total{method=\"get\",path=\"a\\\\b\"} 3\n"
            "calls_total{method=\"two\\nlines\",path=\"\\\"quoted\\\"\"} 1e+15\n"
            "# HELP share A share,\\nin \\\\ lines.\n"
            "# TYPE share gauge\n"
            "share 0.1\n"
            "# HELP none Of nothing.\n"
            "# TYPE none gauge\n");
}

TEST(MetricsTest, AHistogramHasCumulativeBucketsInSeconds) {
  DurationHistogram live;
  for (const uint64_t nanos : {0, 256, 257, 1'000'000}) live.Record(nanos);
  live.Record(20'000'000'000);
  DurationCounts counts;
  live.AddTo(&counts);
  MetricFamily times{.name = "t_seconds", .help = "T.", .type = MetricType::kHistogram};
  times.AddDurations(counts);
  const std::string text = MetricsToText({times});
  EXPECT_THAT(text, StartsWith("# HELP t_seconds T.\n# TYPE t_seconds histogram\nt_seconds_bucket{le=\"2.56e-07\"} 2\n"
                               "t_seconds_bucket{le=\"5.12e-07\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("t_seconds_bucket{le=\"0.000524288\"} 3\nt_seconds_bucket{le=\"0.001048576\"} 4\n"));
  EXPECT_THAT(text, EndsWith("} 4\nt_seconds_bucket{le=\"+Inf\"} 5\nt_seconds_sum 20.001000513\nt_seconds_count 5\n"));
}

TEST(MetricsTest, EveryDurationIsInTheBucketOfItsBound) {
  for (size_t i = 0; i < DurationCounts::kBounds; ++i) {
    EXPECT_EQ(DurationCounts::BucketOf(DurationCounts::BoundOf(i)), i);
    EXPECT_EQ(DurationCounts::BucketOf(DurationCounts::BoundOf(i) + 1), i + 1);
  }
  EXPECT_EQ(DurationCounts::BucketOf(UINT64_MAX), DurationCounts::kBounds);
}

TEST(MetricsTest, EveryNumberHasAText) {
  MetricFamily numbers{.name = "n", .help = "N."};
  for (const double value : {0.0, 268435456.0, -1.5, std::nan(""), std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity()}) {
    numbers.Add(value);
  }
  EXPECT_EQ(MetricsToText({numbers}), "# HELP n N.\n# TYPE n gauge\nn 0\nn 268435456\nn -1.5\nn NaN\nn +Inf\nn -Inf\n");
}

}  // namespace metrics_test
}  // namespace gannet
