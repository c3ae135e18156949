#include "base/metrics.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace gannet {
namespace {

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

TEST(MetricsTest, EveryNumberHasAText) {
  MetricFamily numbers{.name = "n", .help = "N."};
  for (const double value : {0.0, 268435456.0, -1.5, std::nan(""), std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity()}) {
    numbers.Add(value);
  }
  EXPECT_EQ(MetricsToText({numbers}), "# HELP n N.\n# TYPE n gauge\nn 0\nn 268435456\nn -1.5\nn NaN\nn +Inf\nn -Inf\n");
}

}  // namespace
}  // namespace gannet
