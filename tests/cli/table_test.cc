#include "cli/table.h"

#include "base/quantity.h"
#include "gtest/gtest.h"

namespace gannet::cli {
namespace {

TEST(WithCommas, GroupsByThree) {
  EXPECT_EQ(WithCommas(0), "0");
  EXPECT_EQ(WithCommas(999), "999");
  EXPECT_EQ(WithCommas(1000), "1,000");
  EXPECT_EQ(WithCommas(123456), "123,456");
  EXPECT_EQ(WithCommas(1234567), "1,234,567");
}

TEST(Table, AlignsTheFirstColumnLeftAndTheOthersRight) {
  Table table({"", "count"});
  table.Add({"payment", "7"});
  table.Add({"x", "123456"});
  EXPECT_EQ(table.ToString(),
            "          count\n"
            "payment       7\n"
            "x        123456\n");
}

}  // namespace
}  // namespace gannet::cli
