#include "index/catfish/hilbert.h"

#include <algorithm>
#include <utility>

namespace gannet::index::catfish {
namespace {

uint32_t CellOf(double at, double low, double high) {
  if (!(high > low)) return 0;
  const double share = (at - low) / (high - low);
  constexpr double kCells = 4294967296.0;
  return static_cast<uint32_t>(std::clamp(share * kCells, 0.0, kCells - 1));
}

}  // namespace

// Goes from the largest squares to the smallest: the quadrant gives two bits of the position, and the way in which the
// curve goes through it, by which the rest is turned.
uint64_t HilbertPosition(uint32_t x, uint32_t y) {
  uint64_t position = 0;
  for (int bit = 31; bit >= 0; --bit) {
    const uint32_t right = x >> bit & 1;
    const uint32_t top = y >> bit & 1;
    position = position << 2 | ((3 * right) ^ top);
    if (top == 0) {
      if (right == 1) {
        x = ~x;
        y = ~y;
      }
      std::swap(x, y);
    }
  }
  return position;
}

uint64_t HilbertCurve::operator()(const Rectangle& box) const {
  const double x = box.CenterX();
  const double y = box.CenterY();
  if (world_.has_value()) {
    return HilbertPosition(CellOf(x, world_->min_x, world_->max_x), CellOf(y, world_->min_y, world_->max_y));
  }
  return HilbertPosition(static_cast<uint32_t>(OrderedWord(x) >> 32), static_cast<uint32_t>(OrderedWord(y) >> 32));
}

}  // namespace gannet::index::catfish
