// TopModel: maps a key to its sub-model and to its position in that sub-model's range.
//
// It approximates the distribution of the keys by a line, or by several lines where the density changes: a monotonic
// function from the projected key to [0, sub-models]. The integer part of its value is the sub-model, and the fraction
// is that sub-model's input. So neither needs a base key: a sub-model is two small numbers, as precise as its own range
// requires.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "index/xstore/model/projection.h"
#include "rdma/rpc.h"

namespace gannet::index::xstore {

class TopModel {
 public:
  static constexpr size_t kMaxSegments = 1024;
  // Integers are regular or random: a few segments are enough for the changes of density. Names have clusters and gaps
  // at every scale, which a sub-model cannot straighten.
  static constexpr size_t kSegmentsOfIntegers = 64;

  struct Place {
    uint32_t sub_model;
    double x;  // in [0, 1]
  };

  // One sub-model for all keys.
  TopModel() = default;

  // Trains on `samples`: projected keys in ascending order, with equally many keys between any two. Makes at most
  // `max_segments` segments (kMaxSegments at most).
  static TopModel Train(const Projection& projection, std::span<const uint64_t> samples, uint32_t sub_models,
                        size_t max_segments);

  template <int W>
  Place Locate(const KeyWords<W>& key) const {
    return LocateNumber(projection_(key));
  }

  uint32_t sub_models() const { return sub_models_; }
  size_t segments() const { return segments_.size(); }
  size_t bytes() const { return segments_.size() * sizeof(Segment) + sizeof(Projection) + projection_.heap_bytes(); }

  void Encode(rdma::WireWriter& writer) const;
  static StatusOr<TopModel> Decode(rdma::WireReader& reader, int words);

 private:
  // y rises from `begin` at `from` with `slope`, limited by the next segment's begin.
  struct Segment {
    uint64_t from;
    double begin;
    double slope;
  };

  Place LocateNumber(uint64_t number) const {
    size_t low = 0;  // the last segment that begins at or before the number
    for (size_t n = segments_.size(); n > 1;) {
      const size_t half = n / 2;
      if (segments_[low + half].from <= number) low += half;
      n -= half;
    }
    const Segment& segment = segments_[low];
    const double end = low + 1 < segments_.size() ? segments_[low + 1].begin : sub_models_;
    double y = segment.begin;
    if (number > segment.from) {
      y = std::fma(static_cast<double>(number - segment.from), segment.slope, segment.begin);
      if (y > end) y = end;
    }
    const double whole = std::floor(y);
    if (whole >= sub_models_) return {sub_models_ - 1, 1.0};
    return {static_cast<uint32_t>(whole), y - whole};
  }

  Projection projection_;
  uint32_t sub_models_ = 1;
  std::vector<Segment> segments_ = {{0, 0, 0}};
};

}  // namespace gannet::index::xstore
