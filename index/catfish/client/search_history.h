// SearchHistory: what recent searches met, by the size of their windows, so that the next one can be estimated.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "index/rectangle.h"

namespace gannet::index::catfish {

class SearchHistory {
 public:
  struct Met {
    double nodes = 0;
    double entries = 0;
  };

  void Add(const Rectangle& window, const Met& met) {
    Average& average = averages_[ClassOf(window)];
    const double weight = average.known ? kWeight : 1;
    average.known = true;
    average.met.nodes += weight * (met.nodes - average.met.nodes);
    average.met.entries += weight * (met.entries - average.met.entries);
  }
  // What searches of windows of this size met. If there were none, those of the nearest size; if there was no search at
  // all, `unknown`.
  Met Predict(const Rectangle& window, const Met& unknown) const {
    const size_t size = ClassOf(window);
    for (size_t off = 0; off < kClasses; ++off) {
      if (off <= size && averages_[size - off].known) return averages_[size - off].met;
      if (size + off < kClasses && averages_[size + off].known) return averages_[size + off].met;
    }
    return unknown;
  }

 private:
  static constexpr double kWeight = 1.0 / 8;  // of the newest
  static constexpr size_t kClasses = 64;
  // The sizes 2^-32 to 2^31 have classes of their own: each is up to twice as large as the one before.
  static constexpr int kSmallest = -32;

  struct Average {
    Met met;
    bool known = false;
  };

  static size_t ClassOf(const Rectangle& window) {
    const double margin = window.Margin();
    const int exponent = margin > 0 ? std::ilogb(margin) : kSmallest;
    return static_cast<size_t>(std::clamp(exponent - kSmallest, 0, static_cast<int>(kClasses) - 1));
  }

  std::array<Average, kClasses> averages_{};
};

}  // namespace gannet::index::catfish
