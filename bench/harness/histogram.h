// Histogram: latencies in nanoseconds, each known within 1%, in fixed memory.
//
// The layout is that of HdrHistogram. Each value below 128 has its own bucket. Above that, every power of two is
// divided into 64 buckets, so a bucket is at most 1/64 of its value wide and its middle is at most 0.8% off. Not
// thread-safe: workers record into live histograms (live_histogram.h), which are added to one of these.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace gannet::bench {

class Histogram {
 public:
  void Record(uint64_t nanos) {
    ++buckets_[BucketOf(nanos)];
    ++count_;
    sum_ += nanos;
    max_ = std::max(max_, nanos);
  }

  void Merge(const Histogram& other) {
    for (size_t i = 0; i < buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
    count_ += other.count_;
    sum_ += other.sum_;
    max_ = std::max(max_, other.max_);
  }

  // Leaves what was recorded after `earlier`, a state of the same histogram. max() is then exact if it is larger than
  // that of `earlier`, otherwise within 1%.
  void Subtract(const Histogram& earlier) {
    size_t highest = 0;
    count_ = 0;
    for (size_t i = 0; i < buckets_.size(); ++i) {
      buckets_[i] -= earlier.buckets_[i];
      count_ += buckets_[i];
      if (buckets_[i] > 0) highest = i;
    }
    sum_ -= earlier.sum_;
    if (count_ == 0) max_ = 0;
    if (count_ > 0 && max_ == earlier.max_) max_ = std::min(MiddleOf(highest), max_);
  }

  // Calls visit(low, high, count) for the values in [low, high), in ascending order, where count > 0. There are 8 such
  // ranges for each power of two (one for each value below 8): enough for a plot.
  template <class Visit>
  void ForEachRange(const Visit& visit) const {
    Range range;
    uint64_t count = 0;
    for (size_t i = 0; i < buckets_.size(); ++i) {
      if (buckets_[i] == 0) continue;
      const Range next = RangeOf(MiddleOf(i));
      if (next.low != range.low && count > 0) {
        visit(range.low, range.high, count);
        count = 0;
      }
      range = next;
      count += buckets_[i];
    }
    if (count > 0) visit(range.low, range.high, count);
  }

  uint64_t count() const { return count_; }
  uint64_t max() const { return max_; }  // exact
  double mean() const { return count_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(count_); }

  // The smallest recorded value that at least `percent` of all do not exceed, within 1%. 0 if nothing was recorded.
  uint64_t Percentile(double percent) const {
    const double wanted = std::ceil(percent / 100 * static_cast<double>(count_));
    const uint64_t rank = std::clamp<uint64_t>(static_cast<uint64_t>(wanted), 1, std::max<uint64_t>(count_, 1));
    uint64_t seen = 0;
    for (size_t i = 0; i < buckets_.size(); ++i) {
      seen += buckets_[i];
      if (seen >= rank) return std::min(MiddleOf(i), max_);
    }
    return 0;
  }

 private:
  friend class LiveHistogram;

  struct Range {
    uint64_t low = 0;
    uint64_t high = 0;
  };
  static Range RangeOf(uint64_t value) {
    constexpr int kRangeBits = 3;
    const int shift = std::max(static_cast<int>(std::bit_width(value)) - kRangeBits - 1, 0);
    const uint64_t low = value >> shift << shift;
    return {low, low + (uint64_t{1} << shift)};
  }

  static constexpr int kSubBits = 6;
  static constexpr uint64_t kSubBuckets = uint64_t{1} << kSubBits;
  static constexpr int kMaxBits = 44;  // about 4.9 hours; longer ones count as that, but max() is exact
  static constexpr size_t kBuckets = (kMaxBits - kSubBits + 1) * kSubBuckets;

  // Power-of-two group g > 0 holds values of kSubBits + g bits; its 64 buckets are 2^(g-1) wide.
  static size_t BucketOf(uint64_t value) {
    if (value < 2 * kSubBuckets) return value;
    const int shift = std::bit_width(value) - kSubBits - 1;
    return std::min<size_t>(static_cast<size_t>(shift) * kSubBuckets + (value >> shift), kBuckets - 1);
  }
  static uint64_t MiddleOf(size_t bucket) {
    if (bucket < 2 * kSubBuckets) return bucket;
    const uint64_t shift = bucket / kSubBuckets - 1;
    const uint64_t low = (bucket - shift * kSubBuckets) << shift;
    return low + ((uint64_t{1} << shift) >> 1);
  }

  std::array<uint64_t, kBuckets> buckets_{};
  uint64_t count_ = 0;
  uint64_t sum_ = 0;
  uint64_t max_ = 0;
};

}  // namespace gannet::bench
