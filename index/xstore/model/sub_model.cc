#include "index/xstore/model/sub_model.h"

#include <array>

namespace gannet::index::xstore {
namespace {

constexpr std::array<double, 256> ErrorTable() {
  std::array<double, 256> table{};
  for (int code = 1; code < 256; ++code) {
    double value = (8 + (code - 1) % 8) / 1024.0;
    for (int i = 0; i < (code - 1) / 8; ++i) value *= 2;
    table[static_cast<size_t>(code)] = value;
  }
  return table;
}
constexpr std::array<double, 256> kErrors = ErrorTable();

// Range of the distances between the leaves' borders and a line of this slope through the origin.
struct Band {
  double lowest;
  double highest;
  double width() const { return highest - lowest; }
};

Band BandOf(std::span<const LeafSpan> leaves, double slope) {
  Band band{1e300, -1e300};
  for (size_t l = 1; l < leaves.size(); ++l) {
    const double rest = static_cast<double>(l) - slope * leaves[l].low;
    band.lowest = std::min(band.lowest, rest);
    band.highest = std::max(band.highest, rest);
  }
  return band;
}

// The slope with the narrowest band. The band's width is a convex function of the slope.
double NarrowestSlope(std::span<const LeafSpan> leaves) {
  const size_t last = leaves.size() - 1;
  const double run = leaves[last].low - leaves[1].low;
  const auto n = static_cast<double>(leaves.size());
  if (last < 2 || !(run > 0)) return n;
  double low = 0;
  double high = 4 * static_cast<double>(last - 1) / run;
  for (int i = 0; i < 64 && high - low > high * 1e-9; ++i) {
    const double a = low + (high - low) * 0.45;
    const double b = low + (high - low) * 0.55;
    if (BandOf(leaves, a).width() <= BandOf(leaves, b).width()) {
      high = b;
    } else {
      low = a;
    }
  }
  return (low + high) / 2;
}

}  // namespace

double DecodeError(uint8_t code) {
  return kErrors[code];
}

uint8_t EncodeError(double error) {
  const auto at = std::lower_bound(kErrors.begin(), kErrors.end(), error);
  return at == kErrors.end() ? 255 : static_cast<uint8_t>(at - kErrors.begin());
}

SubModel TrainSubModel(std::span<const LeafSpan> leaves) {
  SubModel model;
  model.size = static_cast<uint32_t>(leaves.size());
  if (leaves.size() == 1) return model;
  const double slope = NarrowestSlope(leaves);
  const Band band = BandOf(leaves, slope);
  model.slope = static_cast<float>(slope);
  // The line lies below all borders: all error is on one side, and is rounded up only once.
  model.intercept = static_cast<float>(band.lowest - 1e-9);
  double under = 0;
  double over = 0;
  for (size_t l = 0; l < leaves.size(); ++l) {
    if (l > 0) over = std::max(over, static_cast<double>(l) - model.Line(leaves[l].low));
    // The bound is strictly below the next leaf, hence nextafter.
    if (l + 1 < leaves.size()) {
      under = std::max(under, std::nextafter(model.Line(leaves[l].high) - static_cast<double>(l + 1), 1e300));
    }
  }
  model.under = EncodeError(under);
  model.over = EncodeError(over);
  return model;
}

Quality Judge(const SubModel& model, std::span<const LeafSpan> leaves) {
  constexpr int kPoints = 4;
  double lookup_leaves = 0;
  double error = 0;
  for (size_t l = 0; l < leaves.size(); ++l) {
    const LeafSpan& leaf = leaves[l];
    for (int i = 0; i < kPoints; ++i) {
      const SubModel::Range range = model.Predict(leaf.low + (leaf.high - leaf.low) * (i + 0.5) / kPoints);
      lookup_leaves += range.last - range.first + 1;
    }
    const double middle = model.Line((leaf.low + leaf.high) / 2);
    if (leaves.size() > 1) error += std::abs(middle - (static_cast<double>(l) + 0.5));
  }
  return {static_cast<float>(lookup_leaves / kPoints), static_cast<float>(error)};
}

}  // namespace gannet::index::xstore
