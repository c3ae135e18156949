// LiveHistogram: a histogram into which one thread records while others look.
//
// The recording thread neither waits nor allocates: it adds to words that only it writes. A thread that looks may miss
// the values of the last moments; what it sees of a bucket never decreases.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "bench/harness/histogram.h"

namespace gannet::bench {

class alignas(64) LiveHistogram {
 public:
  // Called by one thread only.
  void Record(uint64_t nanos) {
    Add(&buckets_[Histogram::BucketOf(nanos)], 1);
    Add(&sum_, nanos);
    if (nanos > max_.load(std::memory_order_relaxed)) max_.store(nanos, std::memory_order_relaxed);
    Add(&count_, 1);
  }

  // Adds what was recorded so far. Thread-safe.
  void AddTo(Histogram* sum) const {
    if (count_.load(std::memory_order_relaxed) == 0) return;
    for (size_t i = 0; i < buckets_.size(); ++i) {
      const uint64_t count = buckets_[i].load(std::memory_order_relaxed);
      sum->buckets_[i] += count;
      sum->count_ += count;
    }
    sum->sum_ += sum_.load(std::memory_order_relaxed);
    sum->max_ = std::max(sum->max_, max_.load(std::memory_order_relaxed));
  }

 private:
  static void Add(std::atomic<uint64_t>* value, uint64_t n) {
    value->store(value->load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  std::array<std::atomic<uint64_t>, Histogram::kBuckets> buckets_{};
  std::atomic<uint64_t> count_{0};
  std::atomic<uint64_t> sum_{0};
  std::atomic<uint64_t> max_{0};
};

}  // namespace gannet::bench
