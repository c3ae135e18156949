#include "index/xstore/model/top_model.h"

#include <algorithm>
#include <bit>

namespace gannet::index::xstore {
namespace {

// Neighbouring pieces of the distribution become one segment if their densities differ by less than this factor.
constexpr double kSameDensity = 1.25;

}  // namespace

TopModel TopModel::Train(const Projection& projection, std::span<const uint64_t> samples, uint32_t sub_models,
                         size_t max_segments) {
  TopModel top;
  top.projection_ = projection;
  top.sub_models_ = std::max(sub_models, 1u);
  if (samples.size() < 2 || samples.front() == samples.back()) return top;
  // Knots: samples at equal distances in rank, without duplicates.
  struct Knot {
    uint64_t x;
    double rank;
  };
  std::vector<Knot> knots;
  const auto intervals = static_cast<double>(samples.size() - 1);
  for (size_t i = 0; i <= max_segments; ++i) {
    const size_t at = (samples.size() - 1) * i / max_segments;
    if (!knots.empty() && samples[at] == knots.back().x) {
      if (i == max_segments) knots.back().rank = intervals;
      continue;
    }
    knots.push_back({samples[at], static_cast<double>(at)});
  }
  const auto density = [&knots](size_t from, size_t to) {
    return (knots[to].rank - knots[from].rank) / static_cast<double>(knots[to].x - knots[from].x);
  };
  top.segments_.clear();
  const double scale = top.sub_models_ / intervals;
  for (size_t from = 0; from + 1 < knots.size();) {
    size_t to = from + 1;
    while (to + 1 < knots.size()) {
      const double ratio = density(to, to + 1) / density(from, to);
      if (ratio > kSameDensity || ratio < 1 / kSameDensity) break;
      ++to;
    }
    top.segments_.push_back({knots[from].x, knots[from].rank * scale, density(from, to) * scale});
    from = to;
  }
  return top;
}

void TopModel::Encode(rdma::WireWriter& writer) const {
  projection_.Encode(writer);
  writer.PutU32(sub_models_);
  writer.PutU16(static_cast<uint16_t>(segments_.size()));
  for (const Segment& segment : segments_) {
    writer.PutU64(segment.from);
    writer.PutU64(std::bit_cast<uint64_t>(segment.begin));
    writer.PutU64(std::bit_cast<uint64_t>(segment.slope));
  }
}

StatusOr<TopModel> TopModel::Decode(rdma::WireReader& reader, int words) {
  TopModel top;
  StatusOr<Projection> projection = Projection::Decode(reader, words);
  if (!projection.ok()) return projection.status();
  top.projection_ = *projection;
  top.sub_models_ = reader.GetU32();
  const size_t segments = reader.GetU16();
  if (!reader.ok() || top.sub_models_ == 0 || segments == 0 || segments > kMaxSegments) {
    return absl::InvalidArgumentError("a top model of the owner has no or too many parts");
  }
  top.segments_.clear();
  for (size_t i = 0; i < segments; ++i) {
    const uint64_t from = reader.GetU64();
    const double begin = std::bit_cast<double>(reader.GetU64());
    const double slope = std::bit_cast<double>(reader.GetU64());
    // With any numbers from the peer, predictions stay in [0, sub-models].
    if (!(begin >= 0 && begin <= top.sub_models_ && slope >= 0)) {
      return absl::InvalidArgumentError("a top model of the owner is not monotonic");
    }
    top.segments_.push_back({from, begin, slope});
  }
  return top;
}

}  // namespace gannet::index::xstore
