// Splitting lines into words, and guessing mistyped words.
#include "cli/common/words.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gannet::cli {
namespace words_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(WordsTest, LinesAreSplitAtBlanksOutsideOfQuotes) {
  EXPECT_THAT(*SplitWords(""), IsEmpty());
  EXPECT_THAT(*SplitWords(" \t "), IsEmpty());
  EXPECT_THAT(*SplitWords(" put  a\tb "), ElementsAre("put", "a", "b"));
  EXPECT_THAT(*SplitWords(R"(put 'a b' "it's" x"y z"w '')"), ElementsAre("put", "a b", "it's", "xy zw", ""));
  // Escapes stay, for keys and payloads to decode, except that of the quote that surrounds them.
  EXPECT_THAT(*SplitWords(R"("a\"b" \n\x41 'c\"d' \\)"), ElementsAre("a\"b", R"(\n\x41)", R"(c\"d)", R"(\\)"));
  for (const char* line : {"'a", "a \"b", "\"a\\\""}) {
    const auto words = SplitWords(line);
    EXPECT_TRUE(absl::IsInvalidArgument(words.status())) << line;
    EXPECT_THAT(std::string(words.status().message()), HasSubstr("is not closed"));
  }
}

TEST(WordsTest, DistancesCountEditsAndSwaps) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("scan", "scan"), 0u);
  EXPECT_EQ(EditDistance("scna", "scan"), 1u);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
}

TEST(WordsTest, OnlyNearWordsAreGuessed) {
  const std::vector<std::string> choices = {"get", "put", "scan", "count"};
  EXPECT_EQ(Nearest("gett", choices), "get");
  EXPECT_EQ(Nearest("cuont", choices), "count");
  EXPECT_EQ(Nearest("x", choices), "");
  EXPECT_EQ(Nearest("delete", choices), "");
  EXPECT_EQ(Nearest("pet", choices), "get");  // the first of the nearest
}

}  // namespace words_test
}  // namespace gannet::cli
