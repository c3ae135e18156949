// Piecewise linear regression with a bounded error, in one pass and with the fewest pieces: OptimalPLR (Xie et al.,
// VLDB'14), as ROLEX trains its models (FAST'23, 3.2).
//
//   PlrBuilder builder(epsilon);
//   for each point, by ascending x:
//     if (!builder.Add(x, y)) { <keep builder.Finish()>; builder.Add(x, y); }
//   <keep builder.Finish()>
//
// A line fits a set of points if it passes within `epsilon` of each: if it meets all the vertical segments from
// (x, y - epsilon) to (x, y + epsilon). The builder keeps the steepest and the flattest line that do. Each of them
// touches the lower end of a segment and the upper end of another one. A new point that neither line leaves room for
// ends the piece. To turn a line it needs the lower ends that are not below the line through others (a convex hull),
// and the upper ends likewise. So a point takes amortized constant time. All comparisons are exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gannet::index::rolex {

// y = intercept + slope * (x - first), for x from `first` to the beginning of the next piece.
struct PlrPiece {
  uint64_t first = 0;
  double slope = 0;
  double intercept = 0;

  double At(uint64_t x) const { return intercept + slope * static_cast<double>(x - first); }

  friend bool operator==(const PlrPiece&, const PlrPiece&) = default;
};

// Not thread-safe.
class PlrBuilder {
 public:
  // `epsilon` >= 0.
  explicit PlrBuilder(uint32_t epsilon) : epsilon_(epsilon) {}

  // Adds a point. `x` is greater than that of the point before, and |y| < 2^40. False: no line fits it together with
  // those since the last Finish. It was not added.
  bool Add(uint64_t x, int64_t y);
  // The piece over the points since the last Finish, of which there is at least one. Its error is at most `epsilon`,
  // but for rounding: of about 2^-52 of the difference between the greatest and the smallest y.
  PlrPiece Finish();
  bool empty() const { return points_ == 0; }

 private:
  using Wide = __int128;
  struct Point {
    uint64_t x;
    int64_t y;
  };
  // The slope from one point to another, to the right of it.
  struct Slope {
    Wide dx = 1;  // > 0
    Wide dy = 0;

    friend bool operator<(const Slope& a, const Slope& b) { return a.dy * b.dx < b.dy * a.dx; }
  };
  // The ends of segments that a line can still touch, by ascending x, from `begin` on.
  struct Hull {
    std::vector<Point> points;
    size_t begin = 0;
  };

  static Slope Between(const Point& a, const Point& b) {
    return {static_cast<Wide>(b.x) - static_cast<Wide>(a.x), static_cast<Wide>(b.y) - a.y};
  }
  void Turn(Hull* hull, const Point& end, bool steepest, Point* at, Slope* slope);
  static void Extend(Hull* hull, const Point& point, bool from_above);

  int64_t epsilon_;
  uint64_t points_ = 0;
  uint64_t first_ = 0;
  Hull lower_;  // lower ends; the hull's slopes fall
  Hull upper_;  // upper ends; the hull's slopes rise
  // The steepest line and the flattest line: a point on each, and their slopes. Of at least two points.
  Point steep_at_{};
  Slope steep_;
  Point flat_at_{};
  Slope flat_;
};

}  // namespace gannet::index::rolex
