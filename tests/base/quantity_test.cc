#include "base/quantity.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gannet {
namespace quantity_test {

using ::testing::HasSubstr;

TEST(ParseDuration, NeedsAUnit) {
  EXPECT_EQ(ParseDuration("500ms", absl::ZeroDuration()).value(), absl::Milliseconds(500));
  EXPECT_EQ(ParseDuration("30s", absl::ZeroDuration()).value(), absl::Seconds(30));
  EXPECT_EQ(ParseDuration("2m", absl::ZeroDuration()).value(), absl::Minutes(2));
  EXPECT_EQ(ParseDuration("0s", absl::ZeroDuration()).value(), absl::ZeroDuration());
  for (const char* text : {"30", "soon", "", "inf", "-inf", "3 s", "-3s"}) {
    EXPECT_FALSE(ParseDuration(text, absl::ZeroDuration()).ok()) << text;
  }
}

TEST(ParseDuration, NamesTheLeastThatIsAllowed) {
  const auto parsed = ParseDuration("1ms", absl::Milliseconds(10));
  ASSERT_FALSE(parsed.ok());
  EXPECT_THAT(std::string(parsed.status().message()), HasSubstr("at least 10ms"));
}

TEST(ParseSize, UnderstandsPowersOf1024) {
  EXPECT_EQ(ParseSize("4096").value(), 4096u);
  EXPECT_EQ(ParseSize("512M").value(), uint64_t{512} << 20);
  EXPECT_EQ(ParseSize("8G").value(), uint64_t{8} << 30);
  for (const char* text : {"", "G", "0", "0G", "8g", "8GB", "-1G", "1.5G", "99999999999T"}) {
    EXPECT_FALSE(ParseSize(text).ok()) << text;
  }
}

TEST(FormatBytes, PicksTheUnit) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes(uint64_t{8} << 30), "8.0 GiB");
}

TEST(QuantityTest, LargeNumbersAreInGroupsOfThreeDigits) {
  EXPECT_EQ(WithCommas(0), "0");
  EXPECT_EQ(WithCommas(999), "999");
  EXPECT_EQ(WithCommas(1000), "1,000");
  EXPECT_EQ(WithCommas(1234567), "1,234,567");
  EXPECT_EQ(WithCommas(UINT64_MAX), "18,446,744,073,709,551,615");
}

TEST(QuantityTest, OneThingIsNotSeveral) {
  EXPECT_EQ(Count(0, "server"), "0 servers");
  EXPECT_EQ(Count(1, "server"), "1 server");
  EXPECT_EQ(Count(1234, "server"), "1,234 servers");
}

}  // namespace quantity_test
}  // namespace gannet
