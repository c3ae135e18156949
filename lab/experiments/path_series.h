// Experiments that run each setting with fixed paths and with the adaptive one (docs/choosing-the-path.md): a series of
// points for each, with the same labels.
#pragma once

#include <functional>
#include <string_view>

#include "lab/experiments/experiment.h"
#include "txn/store/options.h"

namespace gannet::experiments {

struct PathSeries {
  std::string_view name;
  txn::ReadPathPolicy reads;
};
inline constexpr PathSeries kAdaptive = {"adaptive", txn::ReadPathPolicy::kAdaptive};

// Null if there is no such point.
const Point* FindPoint(const Experiment& experiment, std::string_view series, std::string_view label);

struct BestFixed {
  double mops = 0;
  std::string_view series;  // empty: there is no such point
};
// The point with this label that has the most `mops`, of those that are not adaptive.
BestFixed BestFixedOf(const Experiment& experiment, std::string_view label,
                      const std::function<double(const Measured&)>& mops);

}  // namespace gannet::experiments
