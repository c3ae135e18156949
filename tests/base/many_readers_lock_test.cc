#include "base/many_readers_lock.h"

#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace gannet {
namespace many_readers_lock_test {

// Readers see both halves of each change, also those that come and go meanwhile. (Under TSan also that they may read
// plain memory.)
TEST(ManyReadersLockTest, ReadersSeeWholeChanges) {
  constexpr uint64_t kChanges = 20'000;
  ManyReadersLock lock;
  uint64_t first = 0;
  uint64_t second = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      auto reader = std::make_unique<ManyReadersLock::Reader>(&lock);
      for (uint64_t seen = 0, reads = 1; seen < 2 * kChanges; ++reads) {
        {
          const std::lock_guard reading(*reader);
          ASSERT_EQ(first, second);
          ASSERT_GE(first, seen);
          seen = first;
        }
        if (reads % 1000 == 0) reader = std::make_unique<ManyReadersLock::Reader>(&lock);
      }
    });
  }
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      ManyReadersLock::Reader reader(&lock);  // who changes may also read
      for (uint64_t n = 0; n < kChanges; ++n) {
        const std::lock_guard changing(lock);
        ++first;
        ++second;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(first, 2 * kChanges);
}

TEST(ManyReadersLockTest, ReadersDoNotWaitForEachOther) {
  ManyReadersLock lock;
  ManyReadersLock::Reader one(&lock);
  ManyReadersLock::Reader other(&lock);
  const std::lock_guard reading(one);
  const std::lock_guard too(other);
}

}  // namespace many_readers_lock_test
}  // namespace gannet
