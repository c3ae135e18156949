// The queue of future events: a heap of small entries, ordered by time, then by the order in which they were pushed.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace gannet::rdma::sim {

struct Event {
  uint64_t time = UINT64_MAX;
  uint64_t sequence = 0;
  uintptr_t target = 0;  // opaque to the queue

  bool Before(const Event& other) const { return time != other.time ? time < other.time : sequence < other.sequence; }
};

// Four children per entry: half the levels of a binary heap, and siblings lie in one or two cache lines.
class EventQueue {
 public:
  bool empty() const { return heap_.empty(); }
  size_t size() const { return heap_.size(); }
  // Time of the first event; UINT64_MAX if the queue is empty.
  uint64_t next_time() const { return next_time_; }

  void Push(uint64_t time, uintptr_t target) {
    const Event event{time, sequence_++, target};
    size_t at = heap_.size();
    heap_.push_back(event);
    for (; at > 0; at = (at - 1) / kFan) {
      const size_t parent = (at - 1) / kFan;
      if (!event.Before(heap_[parent])) break;
      heap_[at] = heap_[parent];
    }
    heap_[at] = event;
    next_time_ = heap_[0].time;
  }

  Event Pop() {
    const Event first = heap_[0];
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) Sink(last);
    next_time_ = heap_.empty() ? UINT64_MAX : heap_[0].time;
    return first;
  }

 private:
  static constexpr size_t kFan = 4;

  // Puts `event` where the root was, or below.
  void Sink(const Event& event) {
    const size_t size = heap_.size();
    size_t at = 0;
    for (;;) {
      const size_t first_child = at * kFan + 1;
      if (first_child >= size) break;
      const size_t end = first_child + kFan < size ? first_child + kFan : size;
      size_t best = first_child;
      for (size_t child = first_child + 1; child < end; ++child) {
        if (heap_[child].Before(heap_[best])) best = child;
      }
      if (!heap_[best].Before(event)) break;
      heap_[at] = heap_[best];
      at = best;
    }
    heap_[at] = event;
  }

  std::vector<Event> heap_;
  uint64_t sequence_ = 0;
  uint64_t next_time_ = UINT64_MAX;
};

}  // namespace gannet::rdma::sim
