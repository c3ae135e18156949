#include "bench/harness/calibration.h"

#include <utility>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace gannet::bench {
namespace calibration_test {

TEST(Calibration, MeasuresSomethingThatCouldBeMemory) {
  const auto calibration = Calibrate();
  ASSERT_TRUE(calibration.ok()) << calibration.status();
  EXPECT_GE(calibration->buffer_bytes, uint64_t{64} << 20);
  // A register is faster than any memory; a dependent read from a disk is slower than any memory.
  EXPECT_GT(calibration->dependent_read_ns, 1);
  EXPECT_LT(calibration->dependent_read_ns, 1e6);
}

TEST(Calibration, IsLeftOutOfShortRuns) {
  for (const auto& [run, measured] : {std::pair(absl::Milliseconds(999), false), std::pair(absl::Seconds(1), true)}) {
    const auto calibration = CalibrateForRun(run);
    ASSERT_TRUE(calibration.ok()) << calibration.status();
    EXPECT_EQ(calibration->is_measured(), measured) << run;
  }
}

}  // namespace calibration_test
}  // namespace gannet::bench
