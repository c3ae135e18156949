#include "ycsb/normal_quantile.h"

#include <array>
#include <cmath>
#include <numbers>

namespace gannet::ycsb {
namespace {

// Coefficients of a polynomial, lowest power first.
template <size_t N>
double Evaluate(const std::array<double, N>& coefficients, double x) {
  double sum = 0;
  for (size_t i = N; i > 0; --i) sum = sum * x + coefficients[i - 1];
  return sum;
}

// Algorithm AS 241, PPND16 (M. Wichura, Applied Statistics 37(3), 1988): a rational function for the middle, and one
// for each tail.
constexpr double kMiddle = 0.425;  // |p - 1/2| up to here
constexpr double kMiddleCentre = 0.180625;
constexpr std::array kMiddleAbove = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                                     1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                     3.3430575583588128105e+4, 2.5090809287301226727e+3};
constexpr std::array kMiddleBelow = {1.0,
                                     4.2313330701600911252e+1,
                                     6.8718700749205790830e+2,
                                     5.3941960214247511077e+3,
                                     2.1213794301586595867e+4,
                                     3.9307895800092710610e+4,
                                     2.8729085735721942674e+4,
                                     5.2264952788528545610e+3};
constexpr double kTailCentre = 1.6;  // for sqrt(-ln p) up to 5, so for p from 1.4e-11 on
constexpr std::array kTailAbove = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                                   3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                                   2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr std::array kTailBelow = {1.0,
                                   2.05319162663775882187e0,
                                   1.67638483018380384940e0,
                                   6.89767334985100004550e-1,
                                   1.48103976427480074590e-1,
                                   1.51986665636164571966e-2,
                                   5.47593808499534494600e-4,
                                   1.05075007164441684324e-9};

// The natural logarithm of a positive number: ln(m 2^e) with m in [1/sqrt(2), sqrt(2)), and ln m = 2 artanh(s).
double PortableLog(double x) {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);
  if (mantissa < std::numbers::sqrt2 / 2) {
    mantissa *= 2;
    --exponent;
  }
  const double s = (mantissa - 1) / (mantissa + 1);
  double sum = 0;
  for (int power = 27; power > 0; power -= 2) sum = sum * s * s + 1.0 / power;
  return 2 * s * sum + exponent * std::numbers::ln2;
}

}  // namespace

double NormalQuantile(double p) {
  const double q = p - 0.5;
  if (std::abs(q) <= kMiddle) {
    const double r = kMiddleCentre - q * q;
    return q * Evaluate(kMiddleAbove, r) / Evaluate(kMiddleBelow, r);
  }
  const double r = std::sqrt(-PortableLog(q < 0 ? p : 1 - p)) - kTailCentre;
  const double z = Evaluate(kTailAbove, r) / Evaluate(kTailBelow, r);
  return q < 0 ? -z : z;
}

// e^x = 2^n e^r with |r| <= ln(2)/2, and the series of e^r.
double PortableExp(double x) {
  const double n = std::floor(x * std::numbers::log2e + 0.5);
  const double r = x - n * std::numbers::ln2;
  double sum = 1;
  for (int i = 16; i > 0; --i) sum = 1 + sum * r / i;
  return std::ldexp(sum, static_cast<int>(n));
}

}  // namespace gannet::ycsb
