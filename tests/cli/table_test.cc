#include "cli/common/table.h"

#include <string>

#include "absl/strings/str_split.h"
#include "base/quantity.h"
#include "gtest/gtest.h"

namespace gannet::cli {
namespace table_test {

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

TEST(Table, LeavesOutRowsOfZeros) {
  Table table({"", "count", "share", "bytes"});
  table.AddUnlessZero({"new", "0", "0.00%", "0 B"});
  EXPECT_TRUE(table.empty());
  table.AddUnlessZero({"old", "0", "0.00%", "-"});
  EXPECT_TRUE(table.empty());
  table.AddUnlessZero({"kept", "0", "0.01%", "0 B"});
  table.Add({"told", "0", "0.00%", "0 B"});
  EXPECT_EQ(table.ToString(),
            "      count  share  bytes\n"
            "kept      0  0.01%    0 B\n"
            "told      0  0.00%    0 B\n");
}

TEST(Table, ContinuesBelowItselfWhereItIsTooWide) {
  Table table({"", "committed", "mean us", "max us"});
  table.Add({"payment", "1,509,739", "1.8", "1881.7"});
  const std::string narrow =
      "         committed  mean us\n"
      "payment  1,509,739      1.8\n"
      "         max us\n"
      "payment  1881.7\n";
  EXPECT_EQ(table.ToString(28), narrow);
  EXPECT_EQ(table.ToString(27), narrow) << "the block is 27 columns wide";
  EXPECT_EQ(table.ToString(10),
            "         committed\n"
            "payment  1,509,739\n"
            "         mean us\n"
            "payment      1.8\n"
            "         max us\n"
            "payment  1881.7\n")
      << "a column is never cut";
  for (int width = 18; width < 60; ++width) {
    for (const auto& line : absl::StrSplit(table.ToString(width), '\n')) EXPECT_LE(line.size(), size_t(width));
  }
}

TEST(Wrap, BreaksLongLinesAtBlanksAndKeepsShortOnes) {
  EXPECT_EQ(Wrap("short\n\nas it is   here\n", 20), "short\n\nas it is   here\n");
  EXPECT_EQ(Wrap("one two three four\n", 9), "one two\n  three\n  four\n");
  EXPECT_EQ(Wrap("  one two three\n", 9), "  one two\n    three\n");
  EXPECT_EQ(Wrap("a-word-that-is-too-long for it\n", 9), "a-word-that-is-too-long\n  for it\n");
  EXPECT_EQ(Wrap("12345678   9\n", 9), "12345678\n  9\n");
  EXPECT_EQ(Wrap("", 9), "");
}

TEST(CountOf, KnowsOneFromMany) {
  EXPECT_EQ(CountOf(0, "batch", "batches"), "0 batches");
  EXPECT_EQ(CountOf(1, "batch", "batches"), "1 batch");
  EXPECT_EQ(CountOf(1234, "batch", "batches"), "1,234 batches");
}

}  // namespace table_test
}  // namespace gannet::cli
