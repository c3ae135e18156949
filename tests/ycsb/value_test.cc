#include "ycsb/value.h"

#include <array>
#include <vector>

#include "gtest/gtest.h"

namespace gannet::ycsb {
namespace value_test {

TEST(Value, IsRightForItsKeyAlone) {
  for (const size_t bytes : {8, 9, 64, 100, 1024}) {
    std::vector<std::byte> value(bytes);
    MakeValue(17, 5, value);
    EXPECT_TRUE(IsValueOf(17, value));
    EXPECT_FALSE(IsValueOf(18, value));
  }
}

TEST(Value, EveryByteCounts) {
  std::array<std::byte, 27> value;
  MakeValue(17, 5, value);
  for (std::byte& byte : value) {
    byte ^= std::byte{1};
    EXPECT_FALSE(IsValueOf(17, value));
    byte ^= std::byte{1};
  }
  EXPECT_TRUE(IsValueOf(17, value));
}

TEST(Value, AMixtureOfTwoIsWrong) {
  std::array<std::byte, 128> one;
  std::array<std::byte, 128> other;
  MakeValue(17, 5, one);
  MakeValue(17, 6, other);
  std::copy(other.begin() + 64, other.end(), one.begin() + 64);
  EXPECT_FALSE(IsValueOf(17, one));
}

}  // namespace value_test
}  // namespace gannet::ycsb
