// ThreadSignal: how the log thread sleeps, and how workers wake it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "base/thread.h"

namespace gannet::log {

// No wake-up is lost: the waker changes something, then looks whether the thread sleeps; the thread says that it
// sleeps, then looks whether something has changed. All of that is seq_cst, so one of them sees the other.
class ThreadSignal {
 public:
  // There is something to make durable. Wakes only a thread that has nothing to do.
  void Dirty() {
    if (state_.load(std::memory_order_seq_cst) == kUntilDirty) Wake();
  }
  // A buffer gets full, or somebody wants the thread to stop: it shall not wait for its next turn.
  void Urgent() {
    urgent_.store(true, std::memory_order_seq_cst);
    if (state_.load(std::memory_order_seq_cst) != kAwake) Wake();
  }

  // Of the log thread. `is_idle`: whether there is still nothing to do; it has to read with seq_cst.
  template <class IsIdle>
  void SleepUntilDirty(uint64_t nanos, IsIdle is_idle) {
    Sleep(kUntilDirty, nanos, is_idle);
  }
  template <class IsIdle>
  void SleepUntilUrgent(uint64_t nanos, IsIdle is_idle) {
    Sleep(kUntilUrgent, nanos, is_idle);
  }
  // Until it is urgent, or `due` (NowNanos), which a thread that calls WakeIfDue notices: at best one on `cpu`, where
  // the log thread runs (-1: anywhere). For a log thread beside workers that are busy. Its own clock is the last
  // resort, `late_nanos` after that: a timer that fires is an interrupt, on a virtual machine some exits, and when it
  // fires amid a commit, the end of that has to be awaited, with another timer. (docs/performance.md has what it
  // saves.)
  template <class IsIdle>
  void SleepUntilDue(uint64_t due, int cpu, uint64_t late_nanos, IsIdle is_idle) {
    const uint64_t now = NowNanos();
    due_cpu_.store(cpu, std::memory_order_relaxed);
    due_.store(due, std::memory_order_seq_cst);
    Sleep(kUntilUrgent, std::max(due, now) - now + late_nanos,
          [&] { return is_idle() && due_.load(std::memory_order_seq_cst) == due; });
    due_.store(kNeverDue, std::memory_order_relaxed);
  }
  // Of threads that commit, now and then, but not within a commit. If none looks, or two do, or one is so late that it
  // ends the sleep after the one it meant, that does no harm: a turn comes late, or early.
  void WakeIfDue() {
    if (due_.load(std::memory_order_relaxed) != kNeverDue) WakeIfDueNow();
  }
  // Of a thread that is about to sleep until something is durable: when it should look again.
  uint64_t NanosUntilDue() const {
    const uint64_t due = due_.load(std::memory_order_relaxed);
    if (due == kNeverDue) return UINT64_MAX;
    const uint64_t now = NowNanos();
    return std::max(due + kFromElsewhereNanos, now) - now;
  }
  bool TakeUrgent() { return urgent_.load(std::memory_order_relaxed) && urgent_.exchange(false); }

 private:
  static constexpr uint32_t kAwake = 0;
  static constexpr uint32_t kUntilDirty = 1;
  static constexpr uint32_t kUntilUrgent = 2;

  static constexpr uint64_t kNeverDue = UINT64_MAX;
  // From another CPU it costs an interrupt, too: whoever is on the thread's own has so long to do it.
  static constexpr uint64_t kFromElsewhereNanos = 50'000;

  void WakeIfDueNow();
  void Wake() {
    state_.store(kAwake, std::memory_order_seq_cst);
    FutexWakeAll(state_);
  }
  template <class IsIdle>
  void Sleep(uint32_t how, uint64_t nanos, IsIdle is_idle) {
    state_.store(how, std::memory_order_seq_cst);
    if (!urgent_.load(std::memory_order_seq_cst) && is_idle()) FutexWait(state_, how, nanos);
    state_.store(kAwake, std::memory_order_seq_cst);
  }

  std::atomic<uint32_t> state_{kAwake};
  std::atomic<bool> urgent_{false};
  std::atomic<int> due_cpu_{-1};
  std::atomic<uint64_t> due_{kNeverDue};
};

}  // namespace gannet::log
