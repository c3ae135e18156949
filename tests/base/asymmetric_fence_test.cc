#include "base/asymmetric_fence.h"

#include <atomic>
#include <cstdint>

#include "base/cache_line.h"
#include "base/thread.h"
#include "gtest/gtest.h"

namespace gannet {
namespace asymmetric_fence_test {

// Each of two threads stores its word and then loads the other's, in rounds that both begin at the same time.
TEST(AsymmetricFenceTest, OneOfTwoThreadsSeesTheOther) {
  constexpr uint64_t kRounds = 20'000;
  struct alignas(kLineBytes) Word {
    std::atomic<uint64_t> value{0};
  };
  Word often, rarely, arrived;
  uint64_t missed_often = 0;  // in the present round
  uint64_t missed_rarely = 0;
  uint64_t missed_by_both = 0;
  const auto meet = [&](uint64_t times) {
    arrived.value.fetch_add(1);
    for (int turn = 1; arrived.value.load() < times; ++turn) {
      if (turn % 1000 == 0) YieldThread();
    }
  };
  Thread other("often", [&] {
    for (uint64_t round = 1; round <= kRounds; ++round) {
      meet(4 * round - 2);
      often.value.store(round, std::memory_order_release);
      AsymmetricFence::Often();
      missed_often = rarely.value.load(std::memory_order_acquire) < round ? 1 : 0;
      meet(4 * round);
    }
  });
  for (uint64_t round = 1; round <= kRounds; ++round) {
    meet(4 * round - 2);
    rarely.value.store(round, std::memory_order_release);
    ASSERT_TRUE(AsymmetricFence::Rarely());
    missed_rarely = often.value.load(std::memory_order_acquire) < round ? 1 : 0;
    meet(4 * round);
    missed_by_both += missed_often * missed_rarely;
    // The other thread writes missed_often again only after this one has come to the next round.
  }
  other.join();
  EXPECT_EQ(missed_by_both, 0u);
}

}  // namespace asymmetric_fence_test
}  // namespace gannet
