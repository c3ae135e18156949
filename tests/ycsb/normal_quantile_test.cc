#include "ycsb/normal_quantile.h"

#include <cmath>

#include "gtest/gtest.h"

namespace gannet::ycsb {
namespace normal_quantile_test {

// The probability of a standard normal variable below `z`.
double Below(double z) {
  return std::erfc(-z / std::sqrt(2.0)) / 2;
}

TEST(NormalQuantile, IsTheInverseOfTheDistribution) {
  for (const double p : {1e-10, 1e-7, 1e-3, 0.0749, 0.0751, 0.3, 0.5, 0.7, 0.9249, 0.9251, 0.999}) {
    EXPECT_NEAR(Below(NormalQuantile(p)) / p, 1, 1e-13) << p;
  }
  EXPECT_EQ(NormalQuantile(0.5), 0);
  EXPECT_NEAR(NormalQuantile(0.25), -NormalQuantile(0.75), 1e-15);
}

TEST(NormalQuantile, AscendsWhereTheFormulaChanges) {
  constexpr double kStep = 1e-12;
  for (const double border : {0.075, 0.925}) {
    double before = NormalQuantile(border - 1001 * kStep);
    for (int i = -1000; i <= 1000; ++i) {
      const double z = NormalQuantile(border + i * kStep);
      ASSERT_GT(z, before) << border << ", " << i;
      before = z;
    }
  }
}

TEST(PortableExp, IsTheExponentialFunction) {
  for (const double x : {-600.0, -12.8, -1.0, -1e-9, 0.0, 0.3, 0.35, 1.0, 12.8, 600.0}) {
    EXPECT_NEAR(PortableExp(x) / std::exp(x), 1, 2e-13) << x;
  }
  EXPECT_EQ(PortableExp(0), 1);
}

}  // namespace normal_quantile_test
}  // namespace gannet::ycsb
