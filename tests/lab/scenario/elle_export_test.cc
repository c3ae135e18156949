// `gannet sim --elle` exports a run with faults as a history that Elle accepts (elle_file.h).
#include <unistd.h>

#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lab/scenario/scenario.h"
#include "lab/scenario/sweep.h"
#include "tests/lab/scenario/elle_file.h"

namespace gannet::scenario {
namespace elle_export_test {

TEST(ElleExport, RunsWithFaultsAreHistoriesThatElleAccepts) {
  std::set<std::string> types;
  for (const char* durability : {"none", "sync"}) {
    ScenarioOptions options;
    options.seed = 51;
    options.workload = "append";
    options.nodes = 3;
    options.durability = durability;
    options.deaths = 1;
    options.power_cuts = *durability == 's' ? 1 : 0;
    options.faulty_nanos = 3'000'000;
    options.faults = rdma::sim::Faults{.lost_request = 0.002, .lost_response = 0.002};
    options.elle_file = testing::TempDir() + "elle_export_test_" + std::to_string(getpid()) + durability + ".edn";
    const Status swept =
        RunSweep({.first_seed = options.seed, .seeds = 1, .scenario = options}, [&](const ScenarioReport& report) {
          EXPECT_TRUE(report.passed) << report.verdict << "\n" << report.details;
          return true;
        });
    ASSERT_TRUE(swept.ok()) << swept;
    const std::vector<Op> history = ReadHistory(options.elle_file);
    ASSERT_GT(history.size(), 100u);
    ExpectAccepted(history);
    for (const Op& op : history) types.insert(op.type);
    std::remove(options.elle_file.c_str());
  }
  EXPECT_EQ(types, (std::set<std::string>{"invoke", "ok", "fail", "info"}));
}

}  // namespace elle_export_test
}  // namespace gannet::scenario
