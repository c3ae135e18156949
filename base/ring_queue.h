// RingQueue<T>: a FIFO queue in one array that only grows. In steady state it allocates nothing (std::deque allocates
// every 512 bytes).
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace gannet {

// T is default-constructible and movable. Not thread-safe.
template <class T>
class RingQueue {
 public:
  bool empty() const { return head_ == tail_; }
  size_t size() const { return tail_ - head_; }

  T& front() { return at(0); }
  // The i-th element from the front, i < size().
  T& at(size_t i) { return slots_[(head_ + i) & (slots_.size() - 1)]; }

  void push_back(T value) {
    if (size() == slots_.size()) Grow();
    slots_[tail_++ & (slots_.size() - 1)] = std::move(value);
  }

  T pop_front() { return std::exchange(slots_[head_++ & (slots_.size() - 1)], T()); }

 private:
  void Grow() {
    std::vector<T> larger(slots_.empty() ? 16 : slots_.size() * 2);
    const size_t count = size();
    for (size_t i = 0; i < count; ++i) larger[i] = std::move(at(i));
    slots_ = std::move(larger);
    head_ = 0;
    tail_ = count;
  }

  std::vector<T> slots_;  // their number is a power of two
  size_t head_ = 0;       // both only count up
  size_t tail_ = 0;
};

}  // namespace gannet
