// DurationHistogram: how long things took, counted by powers of two of nanoseconds. One thread records, others look.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>

namespace gannet {

constexpr double SecondsOf(uint64_t nanos) {
  return static_cast<double>(nanos) * 1e-9;
}

// Counts of a histogram, as plain data.
struct DurationCounts {
  static constexpr size_t kBounds = 27;
  // The upper bound of bucket `i`, which is inclusive: 256 ns, 512 ns, ..., 17.2 s. The last bucket has none.
  static constexpr uint64_t BoundOf(size_t i) { return uint64_t{256} << i; }

  std::array<uint64_t, kBounds + 1> buckets{};
  uint64_t nanos = 0;  // sum of all durations

  uint64_t count() const { return std::accumulate(buckets.begin(), buckets.end(), uint64_t{0}); }
  static size_t BucketOf(uint64_t nanos) {
    constexpr int kFirst = std::bit_width(BoundOf(0) - 1);
    const int width = nanos == 0 ? 0 : std::bit_width(nanos - 1);
    return std::min(static_cast<size_t>(std::max(width - kFirst, 0)), kBounds);
  }
  void Record(uint64_t duration_nanos) {
    ++buckets[BucketOf(duration_nanos)];
    nanos += duration_nanos;
  }
  DurationCounts& operator+=(const DurationCounts& other) {
    for (size_t i = 0; i < buckets.size(); ++i) buckets[i] += other.buckets[i];
    nanos += other.nanos;
    return *this;
  }
};

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
