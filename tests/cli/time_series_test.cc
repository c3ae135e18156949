#include "cli/report/time_series.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace gannet::cli {
namespace time_series_test {

TEST(TimeSeriesCsv, HasALineForEachIntervalAndKind) {
  bench::Interval first;
  first.at_seconds = 1;
  first.seconds = 1;
  first.kinds = {{.operations = 3, .aborts = 1, .p50_us = 6, .p95_us = 8.2, .p99_us = 11.6, .max_us = 20}, {}, {}};
  first.all = first.kinds[0];
  bench::Interval second = first;
  second.at_seconds = 1.5;
  second.seconds = 0.5;
  second.kinds[2] = {.operations = 1, .aborts = 0, .p50_us = 2, .p95_us = 2, .p99_us = 2, .max_us = 2};
  EXPECT_EQ(TimeSeriesCsv({first, second}, {"new_order", "payment", "delivery"}),
            "at_seconds,seconds,type,finished,finished_per_second,aborted,p50_us,p95_us,p99_us,max_us\n"
            "1.000000,1.000000,new_order,3,3.000,1,6.000,8.200,11.600,20.000\n"
            "1.000000,1.000000,delivery,0,0.000,0,0.000,0.000,0.000,0.000\n"
            "1.000000,1.000000,all,3,3.000,1,6.000,8.200,11.600,20.000\n"
            "1.500000,0.500000,new_order,3,6.000,1,6.000,8.200,11.600,20.000\n"
            "1.500000,0.500000,delivery,1,2.000,0,2.000,2.000,2.000,2.000\n"
            "1.500000,0.500000,all,3,6.000,1,6.000,8.200,11.600,20.000\n");
}

TEST(TimeSeriesCsv, OfARunThatWasStoppedInTheWarmUpIsAHeader) {
  EXPECT_EQ(TimeSeriesCsv({}, {"read"}),
            "at_seconds,seconds,type,finished,finished_per_second,aborted,p50_us,p95_us,p99_us,max_us\n");
}

}  // namespace time_series_test
}  // namespace gannet::cli
