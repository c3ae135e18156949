#include "cli/common/live_lines.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gannet::cli {
namespace live_lines_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

const std::vector<LiveLines::Rate> kRates = {{"transactions/s", "351,099"}};

bench::Interval Measured(std::vector<bench::KindInterval> kinds) {
  bench::Interval interval;
  interval.at_seconds = 1;
  interval.seconds = 1;
  interval.kinds = std::move(kinds);
  return interval;
}

const bench::KindInterval kFast = {
    .operations = 7, .aborts = 0, .p50_us = 6, .p95_us = 8.24, .p99_us = 11.6, .max_us = 1898};
const bench::KindInterval kSlow = {
    .operations = 1, .aborts = 0, .p50_us = 99.96, .p95_us = 1234.5, .p99_us = 23456, .max_us = 23456};

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  EXPECT_EQ(lines.back(), "") << "the last line is ended, too";
  lines.pop_back();
  return lines;
}

TEST(LiveLinesTest, AHeaderAndALinePerInterval) {
  LiveLines lines({"new_order", "payment"}, std::nullopt);
  EXPECT_THAT(Lines(lines.Next(kRates, Measured({kFast, kSlow}))),
              ElementsAre("    time  transactions/s          new_order            payment  (p50/p95/p99 in us)",
                          "   1.0 s         351,099       6.0/8.2/11.6   100.0/1234/23456"));
  EXPECT_THAT(Lines(lines.Next(kRates, Measured({kFast, {}}))),
              ElementsAre("   1.0 s         351,099       6.0/8.2/11.6                  -"));
}

TEST(LiveLinesTest, TheHeaderComesAgainAfterTwentyLinesAndForANewKind) {
  LiveLines lines({"read", "scan"}, std::nullopt);
  int headers = 0;
  for (int i = 0; i < 41; ++i) headers += static_cast<int>(Lines(lines.Next(kRates, Measured({kFast, {}}))).size()) - 1;
  EXPECT_EQ(headers, 3);
  const std::string text = lines.Next(kRates, Measured({kFast, kSlow}));
  EXPECT_THAT(Lines(text), SizeIs(2));
  EXPECT_THAT(text, HasSubstr("scan"));
}

TEST(LiveLinesTest, AKindWithoutOperationsHasNoColumn) {
  LiveLines lines({"read", "scan"}, std::nullopt);
  EXPECT_THAT(lines.Next(kRates, Measured({kFast, {}})), Not(HasSubstr("scan")));
  EXPECT_THAT(lines.Next(kRates, Measured({})), Not(HasSubstr("scan"))) << "a run without latencies";
}

TEST(LiveLinesTest, ANarrowTerminalGetsShorterLatenciesThenFewerRatesThenFewerKinds) {
  const std::vector<LiveLines::Rate> rates = {{"transactions/s", "351,099"}, {"aborted", "0.01%"}};
  const bench::KindInterval some = {
      .operations = 1, .aborts = 0, .p50_us = 6.04, .p95_us = 12.3, .p99_us = 345.6, .max_us = 400};
  const auto next = [&](int width) {
    LiveLines lines({"new_order", "payment", "order_status", "delivery", "stock_level"}, width);
    const std::string text = lines.Next(rates, Measured({some, some, some, some, some}));
    for (const std::string& line : Lines(text)) EXPECT_LE(line.size(), static_cast<size_t>(width)) << line;
    return text;
  };
  EXPECT_THAT(next(200), AllOf(HasSubstr("6.0/12.3/346"), HasSubstr("aborted"), HasSubstr("stock_level")));
  EXPECT_THAT(next(105), AllOf(HasSubstr("6.0/12/346"), HasSubstr("aborted"), HasSubstr("stock_level")));
  EXPECT_THAT(next(95), AllOf(HasSubstr("6.0/12/346"), Not(HasSubstr("aborted")), HasSubstr("stock_level")));
  EXPECT_THAT(next(80), AllOf(HasSubstr("delivery"), Not(HasSubstr("stock_level")),
                              HasSubstr("(1 more type in a wider terminal)")));
  EXPECT_THAT(next(40), AllOf(HasSubstr("new_order"), HasSubstr("(4 more types in a wider terminal)")));
}

TEST(LiveLinesTest, TellsWhereTheMeasurementBegins) {
  LiveLines lines({"read"}, std::nullopt);
  bench::Interval warming_up = Measured({kFast});
  warming_up.warming_up = true;
  EXPECT_THAT(Lines(lines.Next(kRates, warming_up)), SizeIs(3));
  EXPECT_THAT(Lines(lines.Next(kRates, warming_up)), SizeIs(1));
  EXPECT_THAT(Lines(lines.Next(kRates, Measured({kFast}))), ElementsAre("measuring", HasSubstr("351,099")));
}

TEST(LiveLinesTest, ShortIntervalsHaveMoreDigits) {
  LiveLines lines({"read"}, std::nullopt);
  bench::Interval interval = Measured({});
  interval.at_seconds = 0.0123456;
  interval.seconds = 0.002;
  EXPECT_THAT(lines.Next(kRates, interval), HasSubstr(" 0.012 s"));
  interval.seconds = 0.00004;
  EXPECT_THAT(lines.Next(kRates, interval), HasSubstr(" 0.012 s")) << "a short interval at the end of a phase";
  EXPECT_THAT(LiveLines({"read"}, std::nullopt).Next(kRates, interval), HasSubstr("0.012346 s"));
}

}  // namespace live_lines_test
}  // namespace gannet::cli
