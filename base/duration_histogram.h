// DurationHistogram: how long things took, counted by powers of two of nanoseconds. One thread records, others look.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/metrics.h"

namespace gannet {

// A number that one thread raises while others read it: neither waits, and the writer needs no atomic instruction.
class OneWriterCounter {
 public:
  // Called by one thread only.
  void Add(uint64_t n) { value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

class DurationHistogram {
 public:
  // Called by one thread only.
  void Record(uint64_t nanos) {
    buckets_[DurationCounts::BucketOf(nanos)].Add(1);
    nanos_.Add(nanos);
  }
  // Adds what was recorded so far. Any thread may look; it may miss the last moments.
  void AddTo(DurationCounts* sum) const {
    for (size_t i = 0; i < buckets_.size(); ++i) sum->buckets[i] += buckets_[i].value();
    sum->nanos += nanos_.value();
  }

 private:
  std::array<OneWriterCounter, DurationCounts::kBounds + 1> buckets_;
  OneWriterCounter nanos_;
};

}  // namespace gannet
