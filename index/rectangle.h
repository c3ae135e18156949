// Rectangle: what spatial indexes store and what searches of them ask for; and the key that a rectangle has in a table.
//
// A spatial index maps keys of 40 bytes: the four coordinates of a rectangle and an id of 8 bytes, so that equal
// rectangles can be different keys. To all other layers (records, log, checkpoints, transactions) such a key is a byte
// key like any other. The bytes compare like (min_x, min_y, max_x, max_y, id).
//
//   const RectangleKey key = ...;
//   StatusOr<RectangleKeyBytes> bytes = EncodeRectangleKey(key.box, key.id);
//   index->Insert(context, bytes->view(), record, nullptr);
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "index/key.h"

namespace gannet::index {

// Largest absolute value of a coordinate. So areas, their sums and squares of distances are finite.
inline constexpr double kMaxCoordinate = 1e150;

// Both ends are included: rectangles that share an edge or a corner meet. A point is a rectangle of no extent.
struct Rectangle {
  double min_x = 0;
  double min_y = 0;
  double max_x = 0;
  double max_y = 0;

  static constexpr Rectangle Point(double x, double y) { return {x, y, x, y}; }
  // The largest rectangle: every valid one meets it.
  static constexpr Rectangle Everything() { return {-kMaxCoordinate, -kMaxCoordinate, kMaxCoordinate, kMaxCoordinate}; }

  constexpr bool Meets(const Rectangle& other) const {
    return min_x <= other.max_x && other.min_x <= max_x && min_y <= other.max_y && other.min_y <= max_y;
  }
  constexpr bool Contains(const Rectangle& other) const {
    return min_x <= other.min_x && other.max_x <= max_x && min_y <= other.min_y && other.max_y <= max_y;
  }
  // The smallest rectangle that contains both.
  constexpr Rectangle Union(const Rectangle& other) const {
    return {std::min(min_x, other.min_x), std::min(min_y, other.min_y), std::max(max_x, other.max_x),
            std::max(max_y, other.max_y)};
  }
  constexpr double Area() const { return (max_x - min_x) * (max_y - min_y); }
  // Half of the perimeter.
  constexpr double Margin() const { return (max_x - min_x) + (max_y - min_y); }
  // Area of the part that both have in common.
  constexpr double Overlap(const Rectangle& other) const {
    const double width = std::min(max_x, other.max_x) - std::max(min_x, other.min_x);
    const double height = std::min(max_y, other.max_y) - std::max(min_y, other.min_y);
    return width > 0 && height > 0 ? width * height : 0;
  }
  // Growth of the area when the rectangle is made to contain `other`.
  constexpr double Enlargement(const Rectangle& other) const { return Union(other).Area() - Area(); }
  constexpr double CenterX() const { return min_x / 2 + max_x / 2; }
  constexpr double CenterY() const { return min_y / 2 + max_y / 2; }
  // Square of the distance from a point to the nearest point of the rectangle; 0 if it contains the point.
  constexpr double SquaredDistance(double x, double y) const {
    const double dx = std::max({min_x - x, 0.0, x - max_x});
    const double dy = std::max({min_y - y, 0.0, y - max_y});
    return dx * dx + dy * dy;
  }

  std::string ToString() const;
  friend constexpr bool operator==(const Rectangle&, const Rectangle&) = default;
};

// InvalidArgument, naming the rectangle and the coordinate, if one is not a number, infinite or beyond kMaxCoordinate,
// or if a minimum is greater than its maximum.
Status CheckRectangle(const Rectangle& box);

// A word that compares like the number. -0.0 and 0.0 are one value. Not for NaN.
uint64_t OrderedWord(double number);
double NumberOf(uint64_t ordered_word);

struct RectangleKey {
  static constexpr size_t kWords = 5;
  static constexpr size_t kBytes = kWords * sizeof(uint64_t);

  Rectangle box;
  uint64_t id = 0;

  // Words that compare, first word first, like the key's bytes.
  std::array<uint64_t, kWords> Words() const;
  friend bool operator==(const RectangleKey&, const RectangleKey&) = default;
};

// The key's bytes.
class RectangleKeyBytes {
 public:
  // The key's rectangle must be valid.
  explicit RectangleKeyBytes(const RectangleKey& key);
  // Valid as long as this object.
  Key view() const { return Key(std::string_view(bytes_.data(), bytes_.size())); }

 private:
  std::array<char, RectangleKey::kBytes> bytes_;
};

// InvalidArgument: see CheckRectangle.
StatusOr<RectangleKeyBytes> EncodeRectangleKey(const Rectangle& box, uint64_t id);
// InvalidArgument if no EncodeRectangleKey gave these bytes.
StatusOr<RectangleKey> DecodeRectangleKey(const Key& key);

}  // namespace gannet::index
