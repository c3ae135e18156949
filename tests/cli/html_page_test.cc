// The pages of --html: what is in them, without a browser.
#include "cli/report/html_page.h"

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/html_text.h"
#include "tests/cli/operation_report.h"

namespace gannet::cli {
namespace html_page_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

Plot SmallPlot() {
  return {.title = "Rate",
          .note = "A & B.",
          .x_label = "time, s",
          .x_name = "time",
          .x_unit = "s",
          .y_label = "per second",
          .y_unit = "",
          .views = {{"", {{"read", {1, 2}, {10, 20}}, {"scan", {}, {}}}}, {"empty", {{"scan", {}, {}}}}}};
}

TEST(HtmlPageTest, IsWholeAndLoadsNothing) {
  HtmlPage page("Title <b>", "subtitle & more");
  page.AddTile("351,099", "transactions per second");
  page.AddTile("FAILS", "conditions", HtmlPage::Mood::kBad);
  page.AddWarning("stopped early");
  page.AddPlot(SmallPlot());
  page.AddTable("Rows", "note", {{"", "n"}, {"a<b", "1"}, {"c", "!2"}}, {0});
  page.AddBars("Ends", "", {"conflict", "rolled back"}, {{"payment", {3, 1}}, {"delivery", {0, 0}}});
  page.AddFacts({{"Options", {{"seed", "1"}}}, {"Nothing", {}}});
  const std::string html = page.ToString();
  ExpectSelfContained(html);
  EXPECT_THAT(html, AllOf(HasSubstr("<h1>Title &lt;b&gt;</h1>"), HasSubstr("subtitle &amp; more"),
                          HasSubstr("<b>351,099</b><span>transactions per second</span>"),
                          HasSubstr("class=\"tile bad\""), HasSubstr("stopped early"), HasSubstr("a&lt;b"),
                          HasSubstr("<td class=\"bad\">2</td>"), HasSubstr("3 / 1"), HasSubstr("A &amp; B.")));
  EXPECT_THAT(html, Not(HasSubstr("<h2>Nothing</h2>")));
  EXPECT_THAT(html, Not(HasSubstr("delivery"))) << "a bar without length";
  EXPECT_THAT(html, AllOf(HasSubstr("uPlot"), HasSubstr("Copyright (c) 2022 Leon Sorokin")));
  const Json plots = PlotsOf(html);
  ASSERT_EQ(plots.size(), 1u);
  EXPECT_THAT(html, HasSubstr("id=\"" + plots[0].at("id").get<std::string>() + "\""));
  ASSERT_EQ(plots[0].at("views").size(), 1u) << "a view without values";
  ASSERT_EQ(plots[0].at("views")[0].at("series").size(), 1u) << "a line without values";
  EXPECT_EQ(plots[0].at("views")[0].at("series")[0].at("y"), Json({10, 20}));
}

TEST(HtmlPageTest, WithoutPlotsHasNoScript) {
  HtmlPage page("Title", "");
  Plot plot = SmallPlot();
  plot.views = {{"", {{"scan", {}, {}}}}};
  page.AddPlot(plot);
  page.AddBars("Ends", "", {"conflict"}, {{"payment", {0}}});
  const std::string html = page.ToString();
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, Not(HasSubstr("Ends")));
  EXPECT_THAT(html, Not(HasSubstr("Rate")));
}

TEST(HtmlPageTest, NothingInTheDataEndsTheScript) {
  HtmlPage page("Title", "");
  Plot plot = SmallPlot();
  plot.x_label = "</script><script>alert(1)</script>";
  page.AddPlot(plot);
  const std::string html = page.ToString();
  EXPECT_THAT(html, Not(HasSubstr("alert(1)</script>")));
  EXPECT_EQ(PlotsOf(html)[0].at("x_label"), plot.x_label);
}

TEST(TimeTextTest, ChoosesTheUnit) {
  EXPECT_EQ(TimeText(7.66), "7.7 µs");
  EXPECT_EQ(TimeText(1234), "1.2 ms");
  EXPECT_EQ(TimeText(1069547.5), "1.1 s");
}

TEST(FactsOfTest, NamesNestedValues) {
  EXPECT_THAT(FactsOf({{"mix", {45, 43}}, {"think_time", false}, {"store", ""}, {"faults", {{"rate", 0.5}}}}),
              ElementsAre(std::pair("mix", "45, 43"), std::pair("think_time", "no"), std::pair("faults.rate", "0.5")));
}

TEST(BenchmarkPlotsTest, ShowOnlyWhatThereWas) {
  const bench::OperationReport reads = ReportOf({1000, 1000, 64'000, 1'000'000});
  const bench::OperationReport none;
  bench::Interval interval;
  interval.at_seconds = 1;
  interval.seconds = 0.5;
  interval.kinds = {{.operations = 4, .aborts = 2, .p50_us = 1, .p95_us = 1000, .p99_us = 1000, .max_us = 1000}, {}};
  interval.all = interval.kinds[0];
  HtmlPage page("Title", "");
  AddBenchmarkPlots("operations", {{"read", &reads}, {"scan", &none}}, reads, {interval}, &page);
  const Json plots = PlotsOf(page.ToString());
  ASSERT_EQ(plots.size(), 4u) << "throughput, latency, distribution, conflicts";
  const Json& throughput = plots[0].at("views")[0].at("series");
  ASSERT_EQ(throughput.size(), 1u) << "one kind is not shown twice, as itself and as all";
  EXPECT_EQ(throughput[0].at("name"), "read");
  EXPECT_EQ(throughput[0].at("y"), Json({8.0}));
  EXPECT_EQ(plots[3].at("views")[0].at("series")[0].at("y"), Json({4.0}));
  const Json& latencies = plots[1].at("views")[0].at("series");
  ASSERT_EQ(latencies.size(), 3u);
  EXPECT_EQ(latencies[2].at("y"), Json({1000.0}));
  // Lines go down to zero between ranges that are apart, and everything adds up.
  const Json& shares = plots[2].at("views")[0].at("series")[0];
  EXPECT_TRUE(std::ranges::is_sorted(shares.at("x").get<std::vector<double>>()));
  const auto y = shares.at("y").get<std::vector<double>>();
  EXPECT_EQ(std::ranges::count(y, 0.0), 6);
  EXPECT_EQ(std::ranges::count_if(y, [](double value) { return value > 0; }), 3);
  EXPECT_EQ(plots[2].at("views")[1].at("series")[0].at("y").back(), 100.0);
}

// A logarithmic axis has no place for them.
TEST(BenchmarkPlotsTest, SharesCountTimesOfZero) {
  const bench::OperationReport reads = ReportOf({0, 1000});
  HtmlPage page("Title", "");
  AddBenchmarkPlots("operations", {{"read", &reads}}, reads, {}, &page);
  const Json plots = PlotsOf(page.ToString());
  ASSERT_EQ(plots.size(), 1u) << "distribution";
  EXPECT_EQ(plots[0].at("views")[1].at("series")[0].at("y"), Json({100.0}));
}

}  // namespace html_page_test
}  // namespace gannet::cli
