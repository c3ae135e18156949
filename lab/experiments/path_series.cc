#include "lab/experiments/path_series.h"

namespace gannet::experiments {

const Point* FindPoint(const Experiment& experiment, std::string_view series, std::string_view label) {
  for (const Point& point : experiment.points) {
    if (point.series == series && point.label == label) return &point;
  }
  return nullptr;
}

BestFixed BestFixedOf(const Experiment& experiment, std::string_view label,
                      const std::function<double(const Measured&)>& mops) {
  BestFixed best;
  for (const Point& point : experiment.points) {
    if (point.label != label || point.series == kAdaptive.name) continue;
    if (!best.series.empty() && mops(point.measured) <= best.mops) continue;
    best = {mops(point.measured), point.series};
  }
  return best;
}

}  // namespace gannet::experiments
