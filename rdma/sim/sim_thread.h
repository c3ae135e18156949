// A simulated thread: a fiber, and its state in the scheduler.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/runtime.h"
#include "base/thread.h"
#include "rdma/global_address.h"
#include "rdma/sim/fiber.h"

namespace gannet {

class Runtime::Thread {
 public:
  enum class State : uint8_t {
    kRunnable,  // runs, or an event will resume it; has a core
    kReady,     // waits for a core
    kParked,    // waits for its key
    kPolling,   // waits for its key, and keeps its core
    kAsleep,    // waits for its deadline
    kIdle,      // waits for any event that its pollers would see
    kDone,
    kDead,  // its node was killed
  };

  uint32_t id = 0;
  rdma::NodeId node = 0;
  State state = State::kRunnable;
  bool timed_out = false;          // whether the last wait ended by its deadline
  uint64_t slice_start = 0;        // since when it has had its core
  uint64_t was_at = 0;             // its own time when it last gave up its core
  uint64_t deadline = UINT64_MAX;  // of its wait, in virtual time
  uint64_t timer_at = UINT64_MAX;  // the next timer event that checks the deadline
  uint64_t wake_at = UINT64_MAX;   // an idle wait must end by then
  uint64_t seen_wakes = 0;         // WakeIdle calls of its node that it has seen
  uint64_t picoseconds = 0;        // charged work below one nanosecond, carried over
  const void* key = nullptr;       // while parked or polling
  Thread* next = nullptr;          // in the list for its state
  Thread* previous = nullptr;
  std::string name;
  std::function<void()> body;
  std::array<std::shared_ptr<void>, kNumLocalSlots> locals;
  std::optional<rdma::sim::Fiber> fiber;  // until it is done

  bool over() const { return state == State::kDone || state == State::kDead; }
};

namespace rdma::sim {

using SimThread = Runtime::Thread;

// A FIFO list. A thread is in one list at a time.
class ThreadList {
 public:
  bool empty() const { return head_ == nullptr; }
  size_t size() const { return size_; }
  SimThread* front() const { return head_; }

  void PushBack(SimThread* thread) {
    thread->next = nullptr;
    thread->previous = tail_;
    (tail_ == nullptr ? head_ : tail_->next) = thread;
    tail_ = thread;
    ++size_;
  }
  void Remove(SimThread* thread) {
    (thread->previous == nullptr ? head_ : thread->previous->next) = thread->next;
    (thread->next == nullptr ? tail_ : thread->next->previous) = thread->previous;
    --size_;
  }
  SimThread* PopFront() {
    SimThread* thread = head_;
    Remove(thread);
    return thread;
  }

 private:
  SimThread* head_ = nullptr;
  SimThread* tail_ = nullptr;
  size_t size_ = 0;
};

}  // namespace rdma::sim
}  // namespace gannet
