// Endless inserting and removing needs no more memory than the largest number of keys at one time.
#include <vector>

#include "tests/conformance/index_suite.h"

namespace gannet::index {
namespace index_memory_test {

TEST_P(IndexSuite, ChurnDoesNotGrowMemory) {
  constexpr uint64_t kLive = 1500;
  Start(kLive);
  uint64_t next = 0;
  uint64_t oldest = 0;
  // A window of keys moves up: the worst case for an ordered index that never frees empty nodes.
  const auto churn = [&](uint64_t steps) {
    for (uint64_t i = 0; i < steps; ++i) {
      InsertBoth(KeyOf(next++));
      if (next - oldest > kLive) RemoveBoth(KeyOf(oldest++));
      if (i % 64 != 0) continue;
      cluster_->PassGracePeriod();
      main_->epoch()->Collect();
    }
  };
  churn(6 * kLive);
  const uint64_t carved = cluster_->owner().slab->statistics().carved_bytes;
  const uint64_t registered = index_->statistics().registered_bytes;
  churn(20 * kLive);
  // Some more for blocks that wait for their grace period or are in caches.
  EXPECT_LE(cluster_->owner().slab->statistics().carved_bytes, carved + carved / 10 + (256 << 10));
  EXPECT_LE(index_->statistics().registered_bytes, registered + registered / 4);
  ExpectSameAsModel();
}

TEST_P(IndexSuite, RandomChurnDoesNotGrowMemory) {
  constexpr uint64_t kSpace = 3000;
  Start(kSpace / 2);
  Random random(31);
  const auto churn = [&](int steps) {
    for (int i = 0; i < steps; ++i) {
      const OwnedKey key = KeyOf(random.Below(kSpace));
      if (model_.contains(key)) {
        RemoveBoth(key);
      } else {
        InsertBoth(key);
      }
      if (i % 64 != 0) continue;
      cluster_->PassGracePeriod();
      main_->epoch()->Collect();
    }
  };
  churn(20000);
  const uint64_t carved = cluster_->owner().slab->statistics().carved_bytes;
  const uint64_t registered = index_->statistics().registered_bytes;
  churn(40000);
  EXPECT_LE(cluster_->owner().slab->statistics().carved_bytes, carved + carved / 10 + (256 << 10));
  EXPECT_LE(index_->statistics().registered_bytes, registered + registered / 4);
  ExpectSameAsModel();
}

}  // namespace index_memory_test
}  // namespace gannet::index
