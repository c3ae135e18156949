// Comma-separated values, read from streams.
#include "cli/rows/csv.h"

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gannet::cli {
namespace csv_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Read {
  std::vector<std::vector<std::string>> records;
  std::vector<uint64_t> lines;
  Status status;
  uint64_t last_line = 0;
};

Read ReadAll(const std::string& text) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  std::fwrite(text.data(), 1, text.size(), file.get());
  std::rewind(file.get());
  CsvReader reader(file.get());
  Read result;
  for (;;) {
    std::vector<std::string> fields;
    const StatusOr<bool> there = reader.Next(&fields);
    result.last_line = reader.line();
    if (!there.ok()) result.status = there.status();
    if (!there.ok() || !*there) return result;
    result.records.push_back(std::move(fields));
    result.lines.push_back(reader.line());
  }
}

TEST(CsvTest, ReadsFieldsOfEveryKind) {
  const Read read = ReadAll("a,b\r\n\"x\"\"y\",\"1,2\"\n,\n\n\"two\nlines\r\n\",z\nlast,\"\"");
  EXPECT_TRUE(read.status.ok()) << read.status;
  EXPECT_THAT(read.records, ElementsAre(ElementsAre("a", "b"), ElementsAre("x\"y", "1,2"), ElementsAre("", ""),
                                        ElementsAre("two\nlines\r\n", "z"), ElementsAre("last", "")));
  EXPECT_THAT(read.lines, ElementsAre(1, 2, 3, 5, 8));
}

TEST(CsvTest, TheMarkOfUtf8IsLeftOutAtTheBeginning) {
  const Read read = ReadAll("\xef\xbb\xbf\"key\",payload\n\xef\xbb\xbf,\xef\n");
  EXPECT_TRUE(read.status.ok()) << read.status;
  EXPECT_THAT(read.records, ElementsAre(ElementsAre("key", "payload"), ElementsAre("\xef\xbb\xbf", "\xef")));
  EXPECT_THAT(read.lines, ElementsAre(1, 2));
  for (const std::string text : {"\xef", "\xef\xbb", "\xef\xbbx", "\xef\nx", "\xef\xef\xbb\xbf"}) {
    const Read whole = ReadAll(text);
    EXPECT_TRUE(whole.status.ok()) << whole.status;
    ASSERT_FALSE(whole.records.empty());
    EXPECT_EQ(whole.records[0][0], text.substr(0, text.find('\n')));
  }
  EXPECT_TRUE(ReadAll("\xef\xbb\xbf").records.empty());
}

TEST(CsvTest, AnEmptyFileHasNoRecord) {
  for (const char* text : {"", "\n", "\r\n\n"}) {
    const Read read = ReadAll(text);
    EXPECT_TRUE(read.status.ok());
    EXPECT_TRUE(read.records.empty()) << text;
  }
}

TEST(CsvTest, SaysWhatIsWrongAndInWhichLine) {
  const auto wrong = [](const std::string& text, const char* says) {
    const Read read = ReadAll("k,v\n" + text);
    EXPECT_TRUE(absl::IsInvalidArgument(read.status)) << text;
    EXPECT_THAT(std::string(read.status.message()), HasSubstr(says));
    EXPECT_EQ(read.last_line, 2u);
  };
  wrong("a,\"b", "not closed");
  wrong("a,\"b\"c\n", "behind a closing quote");
  wrong("a,b\"c\n", "not in quotes");
  wrong("a\rb,c\n", "carriage return");
  wrong("a,\"" + std::string(kMostRecordBytes, 'x'), "longer than");
}

TEST(CsvTest, WrittenFieldsAreReadAgain) {
  std::string text;
  const std::vector<std::string> fields = {"plain", "a,b", "a\"b", "a\nb", "", " blank ", "\r"};
  for (const std::string& field : fields) text += CsvField(field) + ",";
  const Read read = ReadAll(text + "end\n");
  ASSERT_EQ(read.records.size(), 1u) << read.status;
  for (size_t i = 0; i < fields.size(); ++i) EXPECT_EQ(read.records[0][i], fields[i]);
  EXPECT_EQ(CsvField("plain"), "plain");
}

}  // namespace csv_test
}  // namespace gannet::cli
