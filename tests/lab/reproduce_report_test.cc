// Reports of runs that measured nothing.
#include "lab/cli/reproduce_report.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "lab/experiments/catfish/catfish.h"
#include "lab/experiments/kinds/kinds.h"
#include "lab/experiments/paths/paths.h"
#include "lab/experiments/xstore/xstore.h"
#include "nlohmann/json.hpp"

namespace gannet::cli {
namespace reproduce_report_test {

using experiments::Experiment;
using experiments::Report;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

// All experiments of `all`, with runs in which no operation ended.
std::vector<Experiment> Idle(std::vector<Experiment> all) {
  for (Experiment& experiment : all) {
    for (experiments::Point& point : experiment.points) {
      point.measured.report = "{}";
      point.measured.timeline = {{1, 0, std::nullopt}, {1e6, 0, std::nullopt}};
    }
  }
  return all;
}

void ExpectNothingHolds(const Report& report) {
  const Json json = Json::parse(ToJson(report));
  EXPECT_GT(json.at("claims").size(), 2U);
  size_t ratios = 0;
  for (const Json& claim : json.at("claims")) {
    const std::string what = claim.at("what");
    EXPECT_EQ(claim.at("ours").is_null(), claim.at("ratio").is_null()) << what;
    EXPECT_EQ(claim.at("ours").is_null(), claim.at("difference_percent").is_null()) << what;
    const bool compares = what.find(" / ") != std::string::npos || what.find("against") != std::string::npos;
    ratios += compares;
    EXPECT_TRUE(claim.at("ours").is_null() || !compares) << what;
  }
  EXPECT_GT(ratios, 0U);
  for (const Json& experiment : json.at("experiments")) {
    for (const Json& point : experiment.at("points")) {
      EXPECT_TRUE(point.at("latency_us").at("p50").is_null());
      EXPECT_TRUE(point.at("reads_per_operation").is_null());
      EXPECT_TRUE(point.at("bound_by").is_null());
      EXPECT_TRUE(point.at("paper").is_null() || point.at("paper").at("ratio").is_null());
    }
  }
  for (const std::string& text : {ToText(report), ToHtml(report)}) {
    EXPECT_THAT(text, HasSubstr("not measured"));
    EXPECT_THAT(text, Not(ContainsRegex("[^a-z](nan|inf)[^a-z]")));
  }
}

TEST(ReproduceReportTest, OneMachineIsNotSeveral) {
  experiments::Options options;
  options.clients = {1, 1};
  for (const auto make : {experiments::xstore::MakeReport, experiments::paths::MakeReport}) {
    EXPECT_THAT(make(options, {}).setting, HasSubstr("1 machine x 1 client thread,"));
  }
  EXPECT_THAT(experiments::catfish::MakeReport(options, {}).setting, HasSubstr("1 machine x at most 1 client,"));
}

TEST(ReproduceReportTest, SaysWhatWasNotMeasured) {
  const experiments::Options options;
  ExpectNothingHolds(experiments::xstore::MakeReport(options, Idle(experiments::xstore::Experiments(options))));
  ExpectNothingHolds(experiments::catfish::MakeReport(options, Idle(experiments::catfish::Experiments(options))));
  ExpectNothingHolds(experiments::paths::MakeReport(options, Idle(experiments::paths::Experiments(options))));
}

TEST(ReproduceReportTest, ATableHasNothingForWhatWasNotMeasured) {
  const experiments::Options options;
  const Report report = experiments::kinds::MakeReport(options, Idle(experiments::kinds::Experiments(options)));
  const Json json = Json::parse(ToJson(report));
  for (const Json& row : json.at("table").at("rows")) {
    for (const auto& [key, value] : row.items()) EXPECT_EQ(value.is_null(), key != "kind") << key;
  }
  EXPECT_THAT(ToText(report), ContainsRegex("hash +-[- ]+-\n"));
  EXPECT_THAT(ToText(report), Not(ContainsRegex("[^a-z](nan|inf)[^a-z]")));
  // The columns of experiments that were not run are left out.
  const auto columns = [&options](std::vector<Experiment> run) {
    return experiments::kinds::MakeReport(options, std::move(run)).table->columns.size();
  };
  std::vector<Experiment> some = Idle(experiments::kinds::Experiments(options));
  const size_t all = columns(some);
  some.pop_back();
  EXPECT_LT(columns(some), all);
}

}  // namespace reproduce_report_test
}  // namespace gannet::cli
