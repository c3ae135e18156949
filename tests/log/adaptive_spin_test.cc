#include "log/commit/adaptive_spin.h"

#include <cstdint>

#include "base/clock.h"
#include "base/thread.h"
#include "gtest/gtest.h"

namespace gannet::log {
namespace adaptive_spin_test {

constexpr uint64_t kMinute = 60'000'000'000;

// Number of waits in a row that are left out.
int LeftOut(AdaptiveSpin* spin) {
  int left_out = 0;
  while (!spin->is_worthwhile()) {
    EXPECT_FALSE(spin->Until(NowNanos() + kMinute, [] { return false; })) << "and did not wait";
    ++left_out;
  }
  return left_out;
}

class AdaptiveSpinTest : public testing::Test {
 protected:
  void SetUp() override {
    if (HardwareThreads() == 1) GTEST_SKIP() << "nobody spins on a machine with one processor";
  }
  // Waits, but the time is over at once.
  void WaitInVain() {
    EXPECT_FALSE(spin_.Until(0, [] { return false; }));
  }
  // A thread that loses its processor meanwhile gives up, so this repeats it.
  void WaitForAnAnswer() {
    for (int looks = 0; looks < 10;) {
      looks = 0;
      spin_.Until(NowNanos() + kMinute, [&] { return ++looks == 10; });
    }
  }

  AdaptiveSpin spin_;
};

TEST_F(AdaptiveSpinTest, LooksUntilItIsAnswered) {
  WaitForAnAnswer();
  EXPECT_TRUE(spin_.is_worthwhile());
}

TEST_F(AdaptiveSpinTest, AnAnswerThatIsThereIsSeenAlsoWithoutAWait) {
  WaitInVain();
  WaitInVain();
  ASSERT_FALSE(spin_.is_worthwhile());
  EXPECT_TRUE(spin_.Until(0, [] { return true; }));
}

TEST_F(AdaptiveSpinTest, WaitsInVainBecomeRare) {
  for (const int expected : {0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024}) {
    WaitInVain();
    EXPECT_EQ(LeftOut(&spin_), expected);
  }
  WaitForAnAnswer();
  WaitInVain();
  EXPECT_EQ(LeftOut(&spin_), 0) << "an answer ends this";
}

}  // namespace adaptive_spin_test
}  // namespace gannet::log
