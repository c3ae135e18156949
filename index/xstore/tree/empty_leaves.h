// EmptyLeaves: the low fences of leaves that became empty a grace period ago. Thread-safe. Shared by the tree and by
// notes that still wait for their grace period.
#pragma once

#include <atomic>
#include <deque>
#include <mutex>

#include "base/thread.h"
#include "index/xstore/tree/key_codec.h"

namespace gannet::index::xstore {

template <int W>
class EmptyLeaves {
 public:
  // False: there is none. May be stale.
  bool any() const { return count_.load(std::memory_order_relaxed) > 0; }

  void Add(const KeyWords<W>& low) {
    std::lock_guard lock(mutex_);
    lows_.push_back(low);
    count_.store(lows_.size(), std::memory_order_relaxed);
  }
  bool Take(KeyWords<W>* low) {
    std::lock_guard lock(mutex_);
    if (lows_.empty()) return false;
    *low = lows_.front();
    lows_.pop_front();
    count_.store(lows_.size(), std::memory_order_relaxed);
    return true;
  }

 private:
  std::atomic<size_t> count_{0};
  Mutex mutex_;
  std::deque<KeyWords<W>> lows_;
};

}  // namespace gannet::index::xstore
