#include "lab/experiments/spatial/data_set.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace gannet::experiments {
namespace {

using index::Rectangle;

constexpr double kPower = 0.99;

// A number of (least, most] whose density falls with the power kPower.
double DrawPowerLaw(Random& random, double least, double most) {
  constexpr double kExponent = 1 - kPower;
  const double low = std::pow(least, kExponent);
  const double high = std::pow(most, kExponent);
  return std::pow(high - random.Unit() * (high - low), 1 / kExponent);
}

// Draws a rectangle with edges uniform in (0, most], uniformly placed within the unit square.
Rectangle DrawBox(Random& random, double most) {
  const double width = most * (1 - random.Unit());
  const double height = most * (1 - random.Unit());
  const double x = random.Unit() * (1 - width);
  const double y = random.Unit() * (1 - height);
  return {x, y, x + width, y + height};
}

// rea02 has 1,888,012 segments in sub-regions of about 20,000.
constexpr uint64_t kRegions = 94;
constexpr int kRegionsPerRow = 10;
constexpr int kTownsPerRegion = 4;
constexpr double kLeastTown = 0.05;  // edge of a town, as a share of its region's edge
constexpr double kMostTown = 0.4;
constexpr int kRowsOfStreets = 64;      // of a region
constexpr double kStreetBlocks = 0.02;  // length of a segment, as a share of its town's edge
constexpr double kOblique = 0.2;        // share of the segments
constexpr double kLeastMet = 50;
constexpr double kMostMet = 150;

Rectangle DrawSegment(Random& random, const Rectangle& town) {
  const double length = (town.max_x - town.min_x) * kStreetBlocks * (0.5 + random.Unit());
  double width = 0;
  double height = 0;
  if (random.Unit() < kOblique) {
    const double angle = random.Unit() * std::acos(0.0);
    width = length * std::cos(angle);
    height = length * std::sin(angle);
  } else {
    (random.Below(2) == 0 ? width : height) = length;
  }
  const double x = town.min_x + random.Unit() * (town.max_x - town.min_x - width);
  const double y = town.min_y + random.Unit() * (town.max_y - town.min_y - height);
  return {x, y, x + width, y + height};
}

}  // namespace

DataSet::DataSet(const DataOptions& options) : options_(options) {
  if (options.kind == DataKind::kRoads) PlanRoads();
}

// The regions in a random order, each in a cell of its own, with towns that share the region's segments equally: so the
// smaller the town, the denser its streets.
void DataSet::PlanRoads() {
  Random random(Mix64(options_.seed));
  std::vector<int> cells;
  for (int cell = 0; cell < kRegionsPerRow * kRegionsPerRow; ++cell) cells.push_back(cell);
  std::ranges::shuffle(cells, random);
  const uint64_t towns = kRegions * kTownsPerRegion;
  uint64_t planned = 0;
  for (uint64_t r = 0; r < kRegions; ++r) {
    constexpr double kEdge = 1.0 / kRegionsPerRow;
    Region& region = regions_.emplace_back();
    const double left = kEdge * (cells[r] % kRegionsPerRow);
    const int row = cells[r] / kRegionsPerRow;
    const double low = kEdge * row;
    for (int t = 0; t < kTownsPerRegion; ++t) {
      const double edge = kEdge * (kLeastTown + random.Unit() * (kMostTown - kLeastTown));
      const double x = left + random.Unit() * (kEdge - edge);
      const double y = low + random.Unit() * (kEdge - edge);
      const uint64_t town = r * kTownsPerRegion + static_cast<uint64_t>(t);
      const uint64_t end = options_.rectangles * (town + 1) / towns;
      region.towns.push_back({{x, y, x + edge, y + edge}, end - planned});
      planned = end;
    }
  }
}

Status DataSet::ForEach(const std::function<Status(const Rectangle& box, uint64_t id)>& add) const {
  if (options_.kind == DataKind::kRoads) return ForEachSegment(add);
  Random random(options_.seed);
  for (uint64_t id = 0; id < options_.rectangles; ++id) {
    GANNET_RETURN_IF_ERROR(add(DrawBox(random, options_.most_edge), id));
  }
  return absl::OkStatus();
}

Status DataSet::ForEachSegment(const std::function<Status(const Rectangle& box, uint64_t id)>& add) const {
  Random random(options_.seed);
  uint64_t id = 0;
  std::vector<Rectangle> segments;
  for (const Region& region : regions_) {
    segments.clear();
    for (const Town& town : region.towns) {
      for (uint64_t i = 0; i < town.segments; ++i) segments.push_back(DrawSegment(random, town.square));
    }
    const auto row = [](const Rectangle& box) { return -std::floor(box.min_y * kRegionsPerRow * kRowsOfStreets); };
    std::ranges::sort(segments, [&](const Rectangle& a, const Rectangle& b) {
      return std::tuple(row(a), a.min_x) < std::tuple(row(b), b.min_x);
    });
    for (const Rectangle& box : segments) GANNET_RETURN_IF_ERROR(add(box, id++));
  }
  return absl::OkStatus();
}

double DataSet::DrawScale(Random& random) const {
  const WindowScale& scale = options_.windows;
  return scale.least > 0 ? DrawPowerLaw(random, scale.least, scale.most) : scale.most;
}

Rectangle DataSet::DrawWindow(Random& random) const {
  if (options_.kind == DataKind::kUniform) return DrawBox(random, DrawScale(random));
  const std::vector<Town>& towns = regions_[random.Below(regions_.size())].towns;
  const Town& town = towns[random.Below(towns.size())];
  const Rectangle& square = town.square;
  const double met = kLeastMet + random.Unit() * (kMostMet - kLeastMet);
  const double share = std::min(1.0, std::sqrt(met / static_cast<double>(std::max<uint64_t>(1, town.segments))));
  const double edge = share * (square.max_x - square.min_x);
  const double x = square.min_x + random.Unit() * (square.max_x - square.min_x - edge);
  const double y = square.min_y + random.Unit() * (square.max_y - square.min_y - edge);
  return {x, y, x + edge, y + edge};
}

Rectangle DataSet::DrawInsert(Random& random) const {
  const double scale = DrawScale(random);
  const double width = scale * (1 - random.Unit());
  const double height = scale * (1 - random.Unit());
  double x = std::min(DrawPowerLaw(random, 0.5, 1), 1 - width);
  double y = std::min(DrawPowerLaw(random, 0.5, 1), 1 - height);
  const uint64_t mirrored = random.Below(4);
  if ((mirrored & 1) != 0) x = 1 - width - x;
  if ((mirrored & 2) != 0) y = 1 - height - y;
  return {x, y, x + width, y + height};
}

}  // namespace gannet::experiments
