// RedoRing: passes the bytes of one writer's transactions to the log thread. One producer, one consumer, no lock.
//
//   |   free   | transaction | transaction | ... |  free  | pad |
//              ^ tail (consumer)                 ^ head (producer)
//
// Positions only count up; a position's place is its remainder modulo the capacity. A transaction is contiguous: if it
// does not fit before the end of the ring, it begins at the ring's start, and `pad_begin` is the position of the unused
// pad before it. There is never more than one pad between tail and head, because the next pad begins more than a
// capacity after this one.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "base/cache_line.h"
#include "base/check.h"

namespace gannet::log {

class RedoRing {
 public:
  // `bytes` is rounded up to a power of two.
  explicit RedoRing(size_t bytes)
      : capacity_(std::bit_ceil(std::max<size_t>(bytes, kDiskPage))), memory_(new std::byte[capacity_]) {
    std::memset(memory_.get(), 0, capacity_);  // no page faults in the first round
  }

  size_t capacity() const { return capacity_; }
  // Anything up to this size fits into an empty ring at any position of its head.
  size_t largest() const { return capacity_ / 2; }

  // --- Producer ---

  // True if transactions of `bytes` together fit, in any order and with any pad.
  bool HasRoom(size_t bytes) {
    const size_t to_end = capacity_ - (head_ & (capacity_ - 1));
    const size_t need = bytes <= to_end ? bytes : bytes + std::min(to_end, bytes);
    if (need <= capacity_ - (head_ - seen_tail_)) [[likely]]
      return true;
    LookAtTail();
    return need <= capacity_ - (head_ - seen_tail_);
  }
  // True if the ring is getting full, by the tail that the producer saw last; the consumer may have taken more since.
  bool GetsFull() const { return head_ - seen_tail_ > capacity_ / 4 * 3; }
  void LookAtTail() { seen_tail_ = tail_.load(std::memory_order_acquire); }

  // Called some time before Room, because the consumer, possibly on another core, was the last to read the lines that
  // will be written.
  void PrefetchRoom(size_t bytes) const {
    const size_t begin = head_ & (capacity_ - 1);
    const size_t end = std::min(begin + std::min(bytes, kMostPrefetched), capacity_);
    for (size_t at = begin; at < end; at += kLineBytes) PrefetchToWrite(memory_.get() + at);
  }
  // Returns the place to write at most `bytes`, for which there is room.
  std::byte* Room(size_t bytes) {
    const size_t to_end = capacity_ - (head_ & (capacity_ - 1));
    if (bytes > to_end) [[unlikely]] {
      pad_begin_.store(head_, std::memory_order_relaxed);  // published with the next head
      head_ += to_end;
    }
    // Otherwise transactions that are not in the log yet would be overwritten.
    GANNET_CHECK(head_ + bytes - seen_tail_ <= capacity_, "%d bytes at %d of a ring of %d, whose tail is %d", bytes,
                 head_, capacity_, seen_tail_);
    return memory_.get() + (head_ & (capacity_ - 1));
  }
  // Publishes `bytes` written at the last Room. A consumer that sees the new head sees all bytes written before.
  void Publish(size_t bytes) {
    head_ += bytes;
    PreemptionPoint();
    published_.store(head_, std::memory_order_release);
  }

  // --- Consumer ---

  uint64_t published() const { return published_.load(std::memory_order_acquire); }
  uint64_t tail() const { return tail_.load(std::memory_order_relaxed); }

  // Calls visit(span) for the one to three pieces of [tail, head).
  template <class Visit>
  void VisitUpTo(uint64_t head, Visit visit) const {
    uint64_t at = tail();
    const uint64_t pad = pad_begin_.load(std::memory_order_relaxed);
    if (pad != kNoPad && pad >= at && pad < head) {
      VisitPieces(at, pad, visit);
      at = RoundUp(pad + 1, capacity_);
    }
    VisitPieces(at, head, visit);
  }
  void ReleaseUpTo(uint64_t head) {
    GANNET_CHECK(tail() <= head && head <= published(), "the tail goes from %d to %d; %d is published", tail(), head,
                 published());
    tail_.store(head, std::memory_order_release);
  }

 private:
  static constexpr size_t kDiskPage = 4096;
  static constexpr size_t kMostPrefetched = 1024;
  static constexpr uint64_t kNoPad = UINT64_MAX;

  template <class Visit>
  void VisitPieces(uint64_t from, uint64_t to, Visit visit) const {
    while (from < to) {
      const size_t place = from & (capacity_ - 1);
      const size_t bytes = std::min<uint64_t>(to - from, capacity_ - place);
      visit(std::span<const std::byte>(memory_.get() + place, bytes));
      from += bytes;
    }
  }

  const size_t capacity_;
  const std::unique_ptr<std::byte[]> memory_;
  // The producer's line, which the consumer reads once per flush.
  alignas(kLineBytes) uint64_t head_ = 0;
  uint64_t seen_tail_ = 0;
  std::atomic<uint64_t> pad_begin_{kNoPad};
  std::atomic<uint64_t> published_{0};
  // The tail, which the consumer advances.
  alignas(kLineBytes) std::atomic<uint64_t> tail_{0};
};

}  // namespace gannet::log
