#include "index/rolex/plr.h"

#include "base/check.h"

namespace gannet::index::rolex {

bool PlrBuilder::Add(uint64_t x, int64_t y) {
  const Point low{x, y - epsilon_};
  const Point high{x, y + epsilon_};
  if (points_ == 0) {
    first_ = x;
  } else if (points_ == 1) {
    GANNET_CHECK(x > first_, "x does not ascend: %d after %d", x, first_);
    steep_at_ = lower_.points[0];
    steep_ = Between(steep_at_, high);
    flat_at_ = upper_.points[0];
    flat_ = Between(flat_at_, low);
  } else {
    GANNET_CHECK(x > lower_.points.back().x, "x does not ascend: %d after %d", x, lower_.points.back().x);
    const Slope to_high = Between(steep_at_, high);
    const Slope to_low = Between(flat_at_, low);
    if (Between(flat_at_, high) < flat_ || steep_ < Between(steep_at_, low)) return false;
    if (to_high < steep_) Turn(&lower_, high, true, &steep_at_, &steep_);
    if (flat_ < to_low) Turn(&upper_, low, false, &flat_at_, &flat_);
  }
  Extend(&lower_, low, true);
  Extend(&upper_, high, false);
  ++points_;
  return true;
}

// The steepest line must pass below the new upper end, `end`: it turns around until it meets it, and leans on the lower
// end from which the way to `end` is flattest. That is never left of where it leaned before, because the ways to
// `end` from there on along the hull become flatter first and then steeper. The flattest line likewise.
void PlrBuilder::Turn(Hull* hull, const Point& end, bool steepest, Point* at, Slope* slope) {
  size_t best = hull->begin;
  Slope best_slope = Between(hull->points[best], end);
  for (size_t i = best + 1; i < hull->points.size(); ++i) {
    const Slope other = Between(hull->points[i], end);
    if (steepest ? best_slope < other : other < best_slope) break;
    best = i;
    best_slope = other;
  }
  hull->begin = best;
  *at = hull->points[best];
  *slope = best_slope;
}

// Drops the points that the new one makes needless: those of the lower ends that are below a line through two others.
void PlrBuilder::Extend(Hull* hull, const Point& point, bool from_above) {
  std::vector<Point>& points = hull->points;
  while (points.size() >= hull->begin + 2) {
    const Slope before = Between(points[points.size() - 2], points.back());
    const Slope after = Between(points.back(), point);
    if (from_above ? after < before : before < after) break;
    points.pop_back();
  }
  points.push_back(point);
}

PlrPiece PlrBuilder::Finish() {
  GANNET_CHECK(points_ > 0, "a piece over no point");
  PlrPiece piece{.first = first_};
  if (points_ == 1) {
    piece.intercept = static_cast<double>(lower_.points[0].y + epsilon_);
  } else {
    // All lines through the point where the two meet, with a slope between theirs, fit. They meet between the points on
    // which they lean, or are the same.
    const auto steep = static_cast<long double>(steep_.dy) / static_cast<long double>(steep_.dx);
    const auto flat = static_cast<long double>(flat_.dy) / static_cast<long double>(flat_.dx);
    const auto steep_x = static_cast<long double>(steep_at_.x - first_);
    const auto flat_x = static_cast<long double>(flat_at_.x - first_);
    const auto steep_y = static_cast<long double>(steep_at_.y);
    const auto flat_y = static_cast<long double>(flat_at_.y);
    long double x = steep_x;
    if (flat_ < steep_) x = (flat_y - steep_y + steep * steep_x - flat * flat_x) / (steep - flat);
    const long double y = steep_y + steep * (x - steep_x);
    const long double slope = (steep + flat) / 2;
    piece.slope = static_cast<double>(slope);
    piece.intercept = static_cast<double>(y - slope * x);
  }
  points_ = 0;
  lower_.points.clear();
  lower_.begin = 0;
  upper_.points.clear();
  upper_.begin = 0;
  return piece;
}

}  // namespace gannet::index::rolex
