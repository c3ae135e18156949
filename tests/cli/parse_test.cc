#include "cli/common/parse.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gannet::cli {
namespace parse_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ParseInteger, AcceptsTheWholeRangeAndNothingElse) {
  EXPECT_EQ(ParseInteger("1", 1, 64).value(), 1);
  EXPECT_EQ(ParseInteger("64", 1, 64).value(), 64);
  for (const char* text : {"0", "65", "-1", "two", "", "1.5", "1x", "99999999999999999999"}) {
    const auto parsed = ParseInteger(text, 1, 64);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("from 1 to 64"));
  }
}

TEST(ParseMix, IsFivePercentages) {
  EXPECT_THAT(ParseMix("45,43,4,4,4").value(), ElementsAre(45, 43, 4, 4, 4));
  EXPECT_THAT(ParseMix("0,0,0,0,100").value(), ElementsAre(0, 0, 0, 0, 100));
  for (const char* text : {"", "45,43,4,4", "45,43,4,4,4,0", "45,43,4,4,x", "145,-57,4,4,4", "45;43;4;4;4"}) {
    const auto parsed = ParseMix(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("five"));
  }
}

TEST(ParseMix, SaysWhatItSumsTo) {
  const auto parsed = ParseMix("45,43,4,4,5");
  ASSERT_FALSE(parsed.ok());
  EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("sums to 101"));
}

TEST(ParseShares, SaysWhatTheyAre) {
  EXPECT_THAT(ParseShares("90,10,0,0,0", "of this").value(), ElementsAre(90, 10, 0, 0, 0));
  EXPECT_THAT(std::string(ParseShares("90,10", "of this").status().message()), HasSubstr("percentages of this"));
}

TEST(ParseCount, KnowsThousandsAndMillions) {
  EXPECT_EQ(ParseCount("500", 1, 1000).value(), 500u);
  EXPECT_EQ(ParseCount("20K", 1, 1'000'000).value(), 20'000u);
  EXPECT_EQ(ParseCount("10M", 1, 4'000'000'000).value(), 10'000'000u);
  EXPECT_EQ(ParseCount("4G", 1, 4'000'000'000).value(), 4'000'000'000u);
  for (const char* text : {"", "K", "0", "5G", "99999999999999999999", "18446744073709551615G", "-1", "1.5M", "10m"}) {
    EXPECT_FALSE(ParseCount(text, 1, 4'000'000'000).ok()) << text;
  }
}

TEST(ParseChoice, NamesTheChoices) {
  static constexpr std::string_view kNames[] = {"red", "green", "blue"};
  EXPECT_EQ(ParseChoice("green", kNames).value(), 1u);
  EXPECT_EQ(ParseChoice("grey", kNames).status().message(), "must be red, green or blue");
}

TEST(ParseReadPath, KnowsFour) {
  for (const char* text : {"adaptive", "one-sided", "call", "ordered-by-call"}) {
    EXPECT_EQ(FormatReadPath(ParseReadPath(text).value()), text);
  }
  EXPECT_FALSE(ParseReadPath("fast").ok());
}

TEST(ParseDurability, KnowsThreeModesAndTwoMedia) {
  for (const char* text : {"none", "async", "sync"}) EXPECT_EQ(FormatDurability(ParseDurability(text).value()), text);
  EXPECT_FALSE(ParseDurability("on").ok());
  for (const char* text : {"file", "pmem"}) EXPECT_EQ(FormatMedium(ParseMedium(text).value()), text);
  EXPECT_FALSE(ParseMedium("tape").ok());
}

}  // namespace parse_test
}  // namespace gannet::cli
