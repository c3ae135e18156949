// ThreadSignal: lets the log thread sleep and workers wake it.
#pragma once

#include <atomic>
#include <cstdint>

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
  bool TakeUrgent() { return urgent_.load(std::memory_order_relaxed) && urgent_.exchange(false); }

 private:
  static constexpr uint32_t kAwake = 0;
  static constexpr uint32_t kUntilDirty = 1;
  static constexpr uint32_t kUntilUrgent = 2;

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
};

}  // namespace gannet::log
