#include "log/thread_signal.h"

#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "base/thread.h"
#include "gtest/gtest.h"

namespace gannet::log {
namespace {

constexpr uint64_t kMinute = 60'000'000'000;
constexpr uint64_t kMillisecond = 1'000'000;
constexpr int kNoSuchCpu = 100'000;
constexpr int kSleeps = 100;

bool Idle() {
  return true;
}

// Sleeps kSleeps times until something is due, while another thread calls `beside` in a loop. Returns the number of
// early wake-ups: a wake-up that was late for the previous sleep may cause one, which does no harm.
template <class Beside>
int SleepOften(ThreadSignal* signal, int cpu, const Beside& beside) {
  std::atomic<bool> stop{false};
  Thread other("beside", [&] {
    while (!stop.load()) {
      beside();
      YieldThread();
    }
  });
  int early = 0;
  for (int i = 0; i < kSleeps; ++i) {
    const uint64_t due = NowNanos() + static_cast<uint64_t>(i % 4) * kMillisecond / 8;
    signal->SleepUntilDue(due, cpu, kMinute, Idle);
    early += NowNanos() < due ? 1 : 0;
  }
  stop.store(true);
  other.join();
  return early;
}

// Without the worker each sleep would take a minute.
TEST(ThreadSignalTest, AWorkerWakesTheThreadWhenItIsDue) {
  ThreadSignal signal;
  EXPECT_LT(SleepOften(&signal, -1, [&] { signal.WakeIfDue(); }), kSleeps);
}

TEST(ThreadSignalTest, AWorkerOfAnotherCpuWakesItLater) {
  ThreadSignal signal;
  EXPECT_LT(SleepOften(&signal, kNoSuchCpu, [&] { signal.WakeIfDue(); }), kSleeps);
}

TEST(ThreadSignalTest, WhoIsUrgentDoesNotWaitUntilItIsDue) {
  ThreadSignal signal;
  Thread other("urgent", [&] { signal.Urgent(); });
  signal.SleepUntilDue(NowNanos() + kMinute, -1, kMinute, Idle);
  EXPECT_TRUE(signal.TakeUrgent());
  other.join();
}

TEST(ThreadSignalTest, WithoutWorkersItsOwnClockWakesTheThread) {
  ThreadSignal signal;
  const uint64_t due = NowNanos() + kMillisecond;
  signal.SleepUntilDue(due, -1, kMillisecond, Idle);
  EXPECT_GE(NowNanos(), due + kMillisecond);
}

TEST(ThreadSignalTest, WhoSleepsHerselfKnowsWhenToLookAgain) {
  ThreadSignal signal;
  EXPECT_EQ(signal.NanosUntilDue(), UINT64_MAX);
  std::atomic<bool> looked{false};
  Thread other("looks", [&] {
    uint64_t nanos = UINT64_MAX;
    while (nanos == UINT64_MAX) nanos = signal.NanosUntilDue();
    EXPECT_LT(nanos, 2 * kMinute);
    EXPECT_GT(nanos, 0u);
    looked.store(true);
    signal.Urgent();
  });
  signal.SleepUntilDue(NowNanos() + kMinute, -1, kMinute, Idle);
  other.join();
  EXPECT_TRUE(looked.load());
  EXPECT_EQ(signal.NanosUntilDue(), UINT64_MAX);
}

}  // namespace
}  // namespace gannet::log
