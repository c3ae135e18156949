// Hilbert values: positions on a space-filling curve, so that rectangles whose centres have near positions lie near
// each other (Kamel and Faloutsos, VLDB'94).
#pragma once

#include <cstdint>
#include <optional>

#include "index/rectangle.h"

namespace gannet::index::catfish {

// Position of the cell (x, y) on the curve that fills a square of 2^32 by 2^32 cells. A bijection.
uint64_t HilbertPosition(uint32_t x, uint32_t y);

// The Hilbert value of a rectangle: that of its centre.
//
// With `world`, the cells divide that rectangle evenly, and centres outside count as on its edge. Without it, a cell
// has the numbers with the same 32 highest bits (sign, exponent, 20 bits of the fraction). That needs no bounds, but
// cells are smaller near 0, so rectangles are packed a little worse.
class HilbertCurve {
 public:
  explicit HilbertCurve(const std::optional<Rectangle>& world) : world_(world) {}
  uint64_t operator()(const Rectangle& box) const;

 private:
  std::optional<Rectangle> world_;
};

}  // namespace gannet::index::catfish
