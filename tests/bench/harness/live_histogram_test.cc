#include "bench/harness/live_histogram.h"

#include <atomic>
#include <memory>

#include "base/random.h"
#include "base/thread.h"
#include "gtest/gtest.h"

namespace gannet::bench {
namespace live_histogram_test {

TEST(LiveHistogramTest, HasWhatAHistogramHas) {
  Random random(1);
  auto live = std::make_unique<LiveHistogram>();
  auto wanted = std::make_unique<Histogram>();
  for (int i = 0; i < 10'000; ++i) {
    const uint64_t value = random() >> (24 + random.Below(36));
    live->Record(value);
    wanted->Record(value);
  }
  auto sum = std::make_unique<Histogram>();
  live->AddTo(sum.get());
  EXPECT_EQ(sum->count(), wanted->count());
  EXPECT_EQ(sum->max(), wanted->max());
  EXPECT_EQ(sum->mean(), wanted->mean());
  for (int percent = 1; percent <= 100; ++percent) EXPECT_EQ(sum->Percentile(percent), wanted->Percentile(percent));
  live->AddTo(sum.get());
  EXPECT_EQ(sum->count(), 2 * wanted->count()) << "it adds";
}

// What another thread sees only grows, and every difference is made of values that were recorded.
TEST(LiveHistogramTest, AnotherThreadLooksWhileItRecords) {
  constexpr uint64_t kEnough = 200'000;
  auto live = std::make_unique<LiveHistogram>();
  Thread recorder("recorder", [&live] {
    for (uint64_t i = 0; i < kEnough; ++i) live->Record(i % 2 == 0 ? 100 : 90'000);
  });
  auto before = std::make_unique<Histogram>();
  uint64_t sum = 0;
  while (sum < kEnough) {
    auto now = std::make_unique<Histogram>();
    live->AddTo(now.get());
    const Histogram so_far = *now;
    now->Subtract(*before);
    *before = so_far;
    sum += now->count();
    now->ForEachRange([](uint64_t low, uint64_t high, uint64_t) {
      EXPECT_TRUE((low <= 100 && high > 100) || (low <= 90'000 && high > 90'000)) << low << " to " << high;
    });
  }
  recorder.join();
  EXPECT_EQ(sum, kEnough);
}

}  // namespace live_histogram_test
}  // namespace gannet::bench
