// `gannet reproduce` with tiny racks: the report's shape, not its numbers.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/program.h"

namespace gannet::cli {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

const std::vector<std::string> kTiny = {"reproduce", "xstore", "--keys", "2K", "--clients", "2x2", "--scale", "0.05"};

std::string Contents(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Every element ends where it must: except for its first line the page is XHTML.
void ExpectWellFormed(const std::string& html) {
  const std::string page = html.substr(html.find('\n'));
  static const std::regex kTag("<(/?)([a-zA-Z0-9]+)((?:\\s+[-a-zA-Z0-9:]+=\"[^\"<]*\")*)\\s*(/?)>");
  std::vector<std::string> open;
  size_t brackets = 0;
  for (auto tag = std::sregex_iterator(page.begin(), page.end(), kTag); tag != std::sregex_iterator(); ++tag) {
    ++brackets;
    if (!(*tag)[4].str().empty()) continue;
    if ((*tag)[1].str().empty()) {
      open.push_back((*tag)[2]);
      continue;
    }
    ASSERT_FALSE(open.empty());
    ASSERT_EQ(open.back(), (*tag)[2]);
    open.pop_back();
  }
  EXPECT_TRUE(open.empty());
  EXPECT_EQ(brackets, static_cast<size_t>(std::ranges::count(page, '<'))) << "a < that no tag begins with";
}

TEST(ReproduceTest, ReportsEveryPointAsTextJsonAndPage) {
  const std::string json = ::testing::TempDir() + "/reproduce.json";
  const std::string html = ::testing::TempDir() + "/reproduce.html";
  std::vector<std::string> flags = kTiny;
  flags.insert(flags.end(), {"--json", json, "--html", html});
  const Outcome outcome = RunProgram(flags);
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, testing::AnyOf("", testing::HasSubstr(" runs, ")));  // on a slow machine: progress
  const Json report = Json::parse(std::ifstream(json));
  std::vector<std::string> ids;
  const std::string page = Contents(html);
  for (const Json& experiment : report.at("experiments")) {
    ids.push_back(experiment.at("id"));
    EXPECT_THAT(page, HasSubstr("id=\"" + ids.back() + "\""));
    EXPECT_GE(experiment.at("points").size(), ids.back() == "burst" ? 2U : 4U);
    for (const Json& point : experiment.at("points")) {
      const double mops = point.at("million_operations_per_second");
      EXPECT_GT(mops, 0);
      const Json& configuration = point.at("report").at("configuration");
      EXPECT_EQ(configuration.value("keys", 0) == 2000, ids.back() != "fig16b");
      EXPECT_EQ(configuration.value("customers_per_district", 0) == 10, ids.back() == "fig16b");
      if (point.at("paper").is_null()) continue;
      const Json& paper = point.at("paper");
      EXPECT_DOUBLE_EQ(paper.at("ratio"), mops / paper.at("million_operations_per_second").get<double>());
      EXPECT_NE(paper.at("source"), "");
    }
  }
  EXPECT_THAT(ids, ::testing::ElementsAre("fig10", "fig12", "fig14b", "burst", "fig15b", "fig15d", "fig16b"));
  EXPECT_GE(report.at("claims").size(), 5U);
  for (const char* text : {"Fig. 10", "bound by", "C uniform", "2,000 keys", "table 3"}) {
    EXPECT_THAT(outcome.out, HasSubstr(text));
    EXPECT_THAT(page, HasSubstr(text));
  }
  ExpectWellFormed(page);
  std::filesystem::remove(json);
  std::filesystem::remove(html);
}

TEST(ReproduceTest, OnlySomeAndTheSameEveryTimeWithAnyNumberOfJobs) {
  std::vector<std::string> flags = kTiny;
  flags.insert(flags.end(), {"--only", "fig15b", "--jobs", "1"});
  const Outcome one = RunProgram(flags);
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("Fig. 15b"));
  EXPECT_THAT(one.out, ::testing::Not(HasSubstr("Fig. 10")));
  flags.back() = "3";
  EXPECT_EQ(RunProgram(flags).out, one.out);
}

// The claims are what the timelines in the same report say.
TEST(ReproduceTest, ComparesTheAdaptivePathWithTheBetterFixedOneInAStepOfLoad) {
  const std::string json = ::testing::TempDir() + "/reproduce_paths.json";
  const Outcome outcome = RunProgram({"reproduce", "paths", "--only", "load-step", "--scale", "0.02", "--json", json});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const Json report = Json::parse(std::ifstream(json));
  std::filesystem::remove(json);
  // The step of load is from the eighth to the fifth eighth of the run; what follows it is measured later.
  const double run = 160 * 0.02;
  const std::vector<std::pair<double, double>> parts = {{0, run / 8}, {run * 3 / 8, run * 5 / 8}, {run * 7 / 8, run}};
  std::vector<double> best(parts.size(), 0);
  std::vector<double> adaptive(parts.size(), 0);
  for (const Json& point : report.at("experiments").at(0).at("points")) {
    EXPECT_EQ(point.at("timeline").size(), 160U);
    for (size_t part = 0; part < parts.size(); ++part) {
      double sum = 0;
      int n = 0;
      for (const Json& moment : point.at("timeline")) {
        const double at = moment.at(0);
        const double calls = moment.at(2);
        EXPECT_GE(calls, 0);
        EXPECT_LE(calls, 1);
        if (at <= parts[part].first || at > parts[part].second) continue;
        sum += moment.at(1).get<double>();
        ++n;
      }
      ASSERT_GT(n, 0);
      if (point.at("series") == "adaptive") {
        adaptive[part] = sum / n;
      } else {
        best[part] = std::max(best[part], sum / n);
      }
    }
    const auto share = [&point](size_t i) { return point.at("timeline").at(i).at(2).get<double>(); };
    if (point.at("series") == "calls") {
      EXPECT_EQ(share(100), 1);
    }
    if (point.at("series") == "one-sided") {  // inserts are calls
      EXPECT_LT(share(100), 0.5);
    }
  }
  const Json& claims = report.at("claims");
  ASSERT_EQ(claims.size(), parts.size());
  for (size_t part = 0; part < parts.size(); ++part) {
    EXPECT_NEAR(claims.at(part).at("ours"), adaptive[part] / best[part], 0.05) << claims.at(part);
    EXPECT_EQ(claims.at(part).at("paper"), 1);
  }
  for (const char* text : {"better fixed path", "% of accesses by calls, adaptive", "in the step"}) {
    EXPECT_THAT(outcome.out, HasSubstr(text));
  }
}

TEST(ReproduceTest, SaysWhatIsWrongWithAFlag) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{"--scale", "0"}, "--scale 0: must be a number from 0.01 to 1000"},
      {{"--scale", "fast"}, "--scale fast: must be"},
      {{"--keys", "5"}, "--keys 5"},
      {{"--only", "fig99"}, "'fig99': must be some of fig10,"},
      {{"--clients", "many"}, "such as 15x24"},
      {{"--clients", "1x2", "--only", "fig14b"}, "--insert-rate"},
      {{"--html", "/nowhere/page.html"}, "--html /nowhere/page.html"},
      {{"--json", "/nowhere/page.json"}, "--json /nowhere/page.json"},
  };
  for (const auto& [flags, said] : wrong) {
    std::vector<std::string> all = {"reproduce", "xstore"};
    all.insert(all.end(), flags.begin(), flags.end());
    const Outcome outcome = RunProgram(all);
    EXPECT_EQ(outcome.exit_code, 2) << said;
    EXPECT_THAT(outcome.err, HasSubstr(said));
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_EQ(RunProgram({"reproduce"}).exit_code, 2);
}

}  // namespace
}  // namespace gannet::cli
