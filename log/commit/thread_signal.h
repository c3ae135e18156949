// ThreadSignal: lets the log thread sleep and workers wake it.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/thread.h"

namespace gannet::log {

// No wake-up is lost. The waker makes its change, then checks whether the thread sleeps. The thread stores how it
// sleeps, then checks for changes. All of these are seq_cst, so at least one of the two sees the other's store.
//
// No wake-up waits for another waker, which may have lost its core: only the thread itself says that it is awake, so
// each waker that returns has left it awake, or has called the kernel. docs/models/durable.pml is the model of this, of
// what the sleeping thread looks at (log_shared.h), and of its answer.
class ThreadSignal {
 public:
  // Called when there is something to make durable. Wakes the thread only if it has nothing to do.
  void Dirty() { WakeFrom(kUntilDirty); }
  // Called when threads are blocked until something is durable. Also wakes the thread when it waits for more to do.
  void Blocked() { WakeFrom(kUntilBlocked); }
  // Called when a buffer gets full, or to stop the thread. The thread does not wait for its next round then.
  void Urgent() {
    urgent_.store(true, std::memory_order_seq_cst);
    WakeFrom(kUntilUrgent);
  }

  // Called by the log thread. `is_idle` returns true if there is still nothing to do; it must read with seq_cst.
  template <class IsIdle>
  void SleepUntilDirty(uint64_t nanos, IsIdle is_idle) {
    Sleep(kUntilDirty, nanos, is_idle);
  }
  template <class IsIdle>
  void SleepUntilBlocked(uint64_t nanos, IsIdle is_idle) {
    Sleep(kUntilBlocked, nanos, is_idle);
  }
  template <class IsIdle>
  void SleepUntilUrgent(uint64_t nanos, IsIdle is_idle) {
    Sleep(kUntilUrgent, nanos, is_idle);
  }
  bool is_urgent() const { return urgent_.load(std::memory_order_seq_cst); }
  bool TakeUrgent() { return urgent_.load(std::memory_order_relaxed) && urgent_.exchange(false); }

 private:
  static constexpr uint32_t kAwake = 0;
  static constexpr uint32_t kUntilDirty = 1;
  static constexpr uint32_t kUntilBlocked = 2;
  static constexpr uint32_t kUntilUrgent = 3;
  static constexpr uint32_t kWoken = 4;  // by a waker, which may not have called the kernel yet

  // Ends the sleeps up to `deepest`.
  void WakeFrom(uint32_t deepest) {
    uint32_t state = state_.load(std::memory_order_seq_cst);
    while (state != kAwake && state <= deepest) {
      if (state_.compare_exchange_weak(state, kWoken)) state = kWoken;
    }
    if (state == kWoken) FutexWakeAll(state_);
  }
  template <class IsIdle>
  void Sleep(uint32_t how, uint64_t nanos, IsIdle is_idle) {
    state_.store(how, std::memory_order_seq_cst);
    if (!is_urgent() && is_idle()) FutexWait(state_, how, nanos);
    state_.store(kAwake, std::memory_order_seq_cst);
  }

  std::atomic<uint32_t> state_{kAwake};
  std::atomic<bool> urgent_{false};
};

}  // namespace gannet::log
