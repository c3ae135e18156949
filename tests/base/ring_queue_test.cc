#include "base/ring_queue.h"

#include <deque>
#include <memory>

#include "base/random.h"
#include "gtest/gtest.h"

namespace gannet {
namespace ring_queue_test {

TEST(RingQueue, BehavesLikeADeque) {
  RingQueue<uint64_t> queue;
  std::deque<uint64_t> model;
  Random random(1);
  for (uint64_t i = 0; i < 20'000; ++i) {
    // Grows and shrinks in long waves, so that it wraps around at many sizes.
    if (model.empty() || random.Below(100) < (i / 500 % 2 == 0 ? 60u : 40u)) {
      queue.push_back(i);
      model.push_back(i);
    } else {
      ASSERT_EQ(queue.pop_front(), model.front());
      model.pop_front();
    }
    ASSERT_EQ(queue.size(), model.size());
    ASSERT_EQ(queue.empty(), model.empty());
    if (!model.empty()) {
      ASSERT_EQ(queue.front(), model.front());
      const size_t at = random.Below(model.size());
      ASSERT_EQ(queue.at(at), model[at]);
    }
  }
}

TEST(RingQueue, KeepsNothingOfWhatWasTaken) {
  RingQueue<std::shared_ptr<int>> queue;
  auto value = std::make_shared<int>(1);
  queue.push_back(value);
  queue.pop_front();
  EXPECT_EQ(value.use_count(), 1);
}

}  // namespace ring_queue_test
}  // namespace gannet
