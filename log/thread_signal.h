// ThreadSignal: lets the log thread sleep and workers wake it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/clock.h"
#include "base/thread.h"

namespace gannet::log {

// No wake-up is lost. The waker makes its change, then checks whether the thread sleeps. The thread stores that it
// sleeps, then checks for changes. All of these are seq_cst, so at least one of the two sees the other's store.
class ThreadSignal {
 public:
  // Called when there is something to make durable. Wakes the thread only if it has nothing to do.
  void Dirty() {
    if (state_.load(std::memory_order_seq_cst) == kUntilDirty) Wake();
  }
  // Called when a buffer gets full, or to stop the thread. The thread does not wait for its next round then.
  void Urgent() {
    urgent_.store(true, std::memory_order_seq_cst);
    if (state_.load(std::memory_order_seq_cst) != kAwake) Wake();
  }

  // Called by the log thread. `is_idle` returns true if there is still nothing to do; it must read with seq_cst.
  template <class IsIdle>
  void SleepUntilDirty(uint64_t nanos, IsIdle is_idle) {
    Sleep(kUntilDirty, nanos, is_idle);
  }
  template <class IsIdle>
  void SleepUntilUrgent(uint64_t nanos, IsIdle is_idle) {
    Sleep(kUntilUrgent, nanos, is_idle);
  }
  // Sleeps until Urgent, or until `due` (NowNanos). A thread that calls WakeIfDue notices that `due` has passed,
  // preferably one on `cpu`, where the log thread runs (-1: anywhere). For a log thread that shares the processors with
  // busy workers. Its own timer, `late_nanos` after `due`, is the last resort: a timer is an interrupt, on a virtual
  // machine several exits, and if it fires during a commit, the thread must wait for the end of the commit with another
  // timer. (docs/performance.md says how much this saves.)
  template <class IsIdle>
  void SleepUntilDue(uint64_t due, int cpu, uint64_t late_nanos, IsIdle is_idle) {
    const uint64_t now = NowNanos();
    due_cpu_.store(cpu, std::memory_order_relaxed);
    due_.store(due, std::memory_order_seq_cst);
    Sleep(kUntilUrgent, std::max(due, now) - now + late_nanos,
          [&] { return is_idle() && due_.load(std::memory_order_seq_cst) == due; });
    due_.store(kNeverDue, std::memory_order_relaxed);
  }
  // Called sometimes by threads that commit, but not within a commit. It does no harm if no thread calls it, if two
  // do, or if one is so late that it ends the next sleep: a round then only begins late or early.
  void WakeIfDue() {
    if (due_.load(std::memory_order_relaxed) != kNeverDue) WakeIfDueNow();
  }
  // For a thread that is about to sleep until an epoch is durable: the time until it should call WakeIfDue.
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
  // Waking from another CPU costs an interrupt, too. So a thread on the log thread's own CPU gets this much time to do
  // it first.
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
