#include "ycsb/zipf.h"

#include <algorithm>
#include <cmath>

namespace gannet::ycsb {
namespace {

// log(1 + x) / x and (exp(x) - 1) / x, accurate also near 0.
double Log1pOver(double x) {
  return std::abs(x) > 1e-8 ? std::log1p(x) / x : 1 - x * (0.5 - x * (1.0 / 3 - 0.25 * x));
}
double Expm1Over(double x) {
  return std::abs(x) > 1e-8 ? std::expm1(x) / x : 1 + x * 0.5 * (1 + x / 3 * (1 + 0.25 * x));
}

}  // namespace

Zipf::Zipf(double theta) : theta_(theta) {
  first_ = Integral(1.5) - 1;
  accepted_ = 2 - InverseIntegral(Integral(2.5) - Density(2));
}

double Zipf::Density(double x) const {
  return std::exp(-theta_ * std::log(x));
}

double Zipf::Integral(double x) const {
  const double log = std::log(x);
  return Expm1Over((1 - theta_) * log) * log;
}

double Zipf::InverseIntegral(double y) const {
  const double t = std::max(y * (1 - theta_), -1.0);
  return std::exp(Log1pOver(t) * y);
}

uint64_t Zipf::Draw(uint64_t n, Random* random) const {
  const auto most = static_cast<double>(n);
  const double last = Integral(most + 0.5);
  while (true) {
    const double u = last + random->Unit() * (first_ - last);
    const double x = InverseIntegral(u);
    const double k = std::clamp(std::floor(x + 0.5), 1.0, most);
    if (k - x <= accepted_ || u >= Integral(k + 0.5) - Density(k)) return static_cast<uint64_t>(k) - 1;
  }
}

}  // namespace gannet::ycsb
