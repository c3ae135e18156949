// Zipf: a rank r in [0, n) with probability proportional to 1 / (r + 1)^theta.
//
// Uses rejection-inversion (Hörmann, Derflinger: "Rejection-inversion to generate variates from monotone discrete
// distributions", 1996). Exact for every theta >= 0, also below 1 as YCSB's 0.99. It needs no sum over all ranks,
// unlike YCSB's own generator, so `n` may differ between draws.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace gannet::ycsb {

inline constexpr double kYcsbTheta = 0.99;

class Zipf {
 public:
  explicit Zipf(double theta);

  // `n` > 0.
  uint64_t Draw(uint64_t n, Random* random) const;

 private:
  // The density, its integral and the integral's inverse.
  double Density(double x) const;
  double Integral(double x) const;
  double InverseIntegral(double y) const;

  double theta_;
  double first_;     // Integral(1.5) - 1, where rank 0 begins
  double accepted_;  // distance from an integer within which a point needs no further test
};

}  // namespace gannet::ycsb
