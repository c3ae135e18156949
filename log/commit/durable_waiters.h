// The coroutines of one worker that wait for an epoch to be durable, ordered by epoch, and within an epoch first come,
// first served. Epochs arrive nearly in order, so a waiter is nearly always added at the end. (The exception is a
// commit that met a later epoch at another node.) In steady state nothing is allocated.
#pragma once

#include <algorithm>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gannet::log {

class DurableWaiters {
 public:
  struct Waiter {
    uint64_t epoch = 0;
    uint64_t deadline_nanos = 0;
    std::coroutine_handle<> handle;
  };

  size_t size() const { return waiters_.size() - first_; }
  bool empty() const { return size() == 0; }
  uint64_t least_epoch() const { return waiters_[first_].epoch; }          // not empty
  uint64_t earliest_deadline() const { return earliest_deadline_nanos_; }  // or earlier than that

  void Add(const Waiter& waiter) {
    const auto later = [](const Waiter& a, const Waiter& b) { return a.epoch < b.epoch; };
    waiters_.insert(std::upper_bound(begin(), waiters_.end(), waiter, later), waiter);
    earliest_deadline_nanos_ = std::min(earliest_deadline_nanos_, waiter.deadline_nanos);
  }

  // Removes the waiters whose epoch is at most `durable` and calls `resume` with their handles. `resume` makes the
  // handle ready; it must not add waiters before it returns.
  template <class Resume>
  size_t TakeDurable(uint64_t durable, const Resume& resume) {
    size_t taken = 0;
    for (; first_ < waiters_.size() && waiters_[first_].epoch <= durable; ++first_, ++taken)
      resume(waiters_[first_].handle);
    if (taken != 0) Compact();
    return taken;
  }

  // Does what TakeDurable does, for the waiters whose deadline has passed.
  template <class Resume>
  size_t TakeLate(uint64_t now_nanos, const Resume& resume) {
    if (now_nanos < earliest_deadline_nanos_) return 0;
    const auto late = [&](const Waiter& waiter) { return waiter.deadline_nanos <= now_nanos; };
    const auto kept = std::stable_partition(begin(), waiters_.end(), [&](const Waiter& w) { return !late(w); });
    const size_t taken = static_cast<size_t>(waiters_.end() - kept);
    for (auto at = kept; at != waiters_.end(); ++at) resume(at->handle);
    waiters_.erase(kept, waiters_.end());
    earliest_deadline_nanos_ = UINT64_MAX;
    for (auto at = begin(); at != waiters_.end(); ++at)
      earliest_deadline_nanos_ = std::min(earliest_deadline_nanos_, at->deadline_nanos);
    Compact();
    return taken;
  }

 private:
  std::vector<Waiter>::iterator begin() { return waiters_.begin() + static_cast<ptrdiff_t>(first_); }
  void Compact() {
    if (first_ == waiters_.size()) {
      waiters_.clear();
      first_ = 0;
      earliest_deadline_nanos_ = UINT64_MAX;
    } else if (first_ >= 256 && first_ * 2 >= waiters_.size()) {
      waiters_.erase(waiters_.begin(), begin());
      first_ = 0;
    }
  }

  std::vector<Waiter> waiters_;  // from first_ on
  size_t first_ = 0;
  uint64_t earliest_deadline_nanos_ = UINT64_MAX;
};

}  // namespace gannet::log
