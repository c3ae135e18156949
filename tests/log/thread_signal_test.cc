#include "log/commit/thread_signal.h"

#include <atomic>
#include <cstdint>

#include "base/thread.h"
#include "gtest/gtest.h"

namespace gannet::log {
namespace thread_signal_test {

constexpr uint64_t kMinute = 60'000'000'000;

bool Idle() {
  return true;
}

TEST(ThreadSignalTest, UrgentEndsBothKindsOfSleep) {
  ThreadSignal signal;
  Thread first("urgent", [&] { signal.Urgent(); });
  signal.SleepUntilUrgent(kMinute, Idle);  // without the signal this would take a minute
  first.join();
  EXPECT_TRUE(signal.TakeUrgent());
  EXPECT_FALSE(signal.TakeUrgent());
  Thread second("urgent", [&] { signal.Urgent(); });
  signal.SleepUntilDirty(kMinute, Idle);
  second.join();
  EXPECT_TRUE(signal.TakeUrgent());
}

TEST(ThreadSignalTest, DirtyEndsTheSleepOfAThreadWithNothingToDo) {
  ThreadSignal signal;
  std::atomic<bool> dirty{false};
  Thread other("dirty", [&] {
    dirty.store(true);
    signal.Dirty();
  });
  while (!dirty.load()) signal.SleepUntilDirty(kMinute, [&] { return !dirty.load(); });
  other.join();
  EXPECT_FALSE(signal.TakeUrgent());
}

TEST(ThreadSignalTest, AChangeBeforeTheSleepIsSeen) {
  ThreadSignal signal;
  signal.Dirty();  // nobody sleeps yet
  signal.SleepUntilDirty(kMinute, [] { return false; });
  signal.Urgent();
  signal.SleepUntilUrgent(kMinute, Idle);
  EXPECT_TRUE(signal.TakeUrgent());
}

}  // namespace thread_signal_test
}  // namespace gannet::log
