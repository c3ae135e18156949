#include "tpcc/schema/random.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gannet::tpcc {
namespace random_test {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::Le;

TEST(NonUniformTest, StaysInRange) {
  Random random(1);
  const NonUniform constants = NonUniform::ForLoad(1);
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_LT(constants.LastName(random, 1000), 1000u);
    ASSERT_THAT(constants.Customer(random, 3000), AllOf(Ge(1u), Le(3000u)));
    ASSERT_THAT(constants.Item(random, 100000), AllOf(Ge(1u), Le(100000u)));
  }
}

TEST(NonUniformTest, ReachesBothEndsOfASmallRange) {
  Random random(2);
  const NonUniform constants = NonUniform::ForLoad(2);
  std::array<int, 11> seen{};
  for (int i = 0; i < 10'000; ++i) ++seen[constants.Customer(random, 10)];
  EXPECT_EQ(seen[0], 0);
  EXPECT_TRUE(std::all_of(seen.begin() + 1, seen.end(), [](int n) { return n > 0; }));
}

// The OR of two random numbers has more bits set than not, so some customers are far more popular than the average.
TEST(NonUniformTest, IsSkewed) {
  constexpr int kCustomerDraws = 300'000, kCustomers = 3000;
  Random random(3);
  const NonUniform constants = NonUniform::ForLoad(3);
  std::vector<int> seen(kCustomers + 1);
  for (int i = 0; i < kCustomerDraws; ++i) ++seen[constants.Customer(random, kCustomers)];
  std::sort(seen.begin(), seen.end(), std::greater<>());
  int hottest_tenth = 0;
  for (int i = 0; i < kCustomers / 10; ++i) hottest_tenth += seen[i];
  EXPECT_GT(hottest_tenth, kCustomerDraws / 4);
}

TEST(NonUniformTest, RunConstantKeepsItsDistanceFromTheLoads) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const NonUniform load = NonUniform::ForLoad(seed);
    const NonUniform run = NonUniform::ForRun(seed * 7, load);
    const int delta = std::abs(static_cast<int>(run.c_last()) - static_cast<int>(load.c_last()));
    ASSERT_THAT(delta, AllOf(Ge(65), Le(119)));
    ASSERT_NE(delta, 96);
    ASSERT_NE(delta, 112);
    ASSERT_LE(run.c_last(), 255u);
  }
}

TEST(LastNameTest, FollowsTheSyllables) {
  EXPECT_EQ(LastName(0).view(), "BARBARBAR");
  EXPECT_EQ(LastName(371).view(), "PRICALLYOUGHT");
  EXPECT_EQ(LastName(40).view(), "BARPRESBAR");
  EXPECT_EQ(LastName(777).view(), "CALLYCALLYCALLY");
  EXPECT_EQ(LastName(999).view(), "EINGEINGEING");
}

TEST(LastNameTest, NamesAreDistinct) {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < 1000; ++i) names.emplace_back(LastName(i).view());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());
}

TEST(RandomTextTest, HasEveryLengthAndOnlyLegalCharacters) {
  Random random(4);
  std::array<int, 25> lengths{};
  for (int i = 0; i < 5000; ++i) {
    Text<24> text;
    std::memset(text.bytes, '#', sizeof(text.bytes));
    RandomText(random, 14, 24, &text);
    ++lengths[text.view().size()];
    for (const char c : text.view()) ASSERT_TRUE(std::isalnum(static_cast<unsigned char>(c)) || c == ' ' || c == '.');
    for (size_t j = text.view().size(); j < 24; ++j) ASSERT_EQ(text.bytes[j], 0);
  }
  for (int n = 0; n < 25; ++n) EXPECT_EQ(lengths[n] > 0, n >= 14) << n;
}

TEST(RandomTextTest, DigitsAreDigits) {
  Random random(5);
  std::array<int, 10> seen{};
  for (int i = 0; i < 1000; ++i) {
    Text<16> phone;
    FillDigits(random, phone.bytes);
    for (const char c : phone.bytes) {
      ASSERT_TRUE(c >= '0' && c <= '9');
      ++seen[c - '0'];
    }
  }
  EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](int n) { return n > 0; }));
}

TEST(RandomDataTest, EveryTenthIsOriginal) {
  constexpr int kRows = 50'000;
  Random random(6);
  int originals = 0;
  for (int i = 0; i < kRows; ++i) {
    Text<50> data;
    RandomData(random, &data);
    ASSERT_THAT(data.view().size(), AllOf(Ge(26u), Le(50u)));
    ASSERT_EQ(IsOriginal(data), data.view().find(kOriginal) != std::string_view::npos);
    originals += IsOriginal(data);
  }
  EXPECT_THAT(originals, AllOf(Ge(kRows * 9 / 100), Le(kRows * 11 / 100)));
}

TEST(IsOriginalTest, FindsItAnywhere) {
  for (size_t at = 0; at <= 42; ++at) {
    Text<50> data;
    std::memset(data.bytes, 'O', sizeof(data.bytes));
    EXPECT_FALSE(IsOriginal(data));
    std::memcpy(data.bytes + at, kOriginal.data(), kOriginal.size());
    EXPECT_TRUE(IsOriginal(data)) << at;
  }
  Text<50> cut;
  cut.Assign("ORIGINA");
  EXPECT_FALSE(IsOriginal(cut));
}

TEST(RandomAddressTest, ZipEndsWithOnes) {
  Random random(7);
  const Address address = RandomAddress(random);
  EXPECT_EQ(address.zip.view().size(), 9u);
  EXPECT_EQ(address.zip.view().substr(4), "11111");
  EXPECT_EQ(address.state.view().size(), 2u);
}

}  // namespace random_test
}  // namespace gannet::tpcc
