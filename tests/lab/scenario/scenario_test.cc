// Scenarios end to end: they are deterministic, they pass, and explicitly set options are used.
#include "lab/scenario/scenario.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lab/scenario/mark_tally.h"
#include "lab/scenario/report_json.h"
#include "lab/scenario/sweep.h"

namespace gannet::scenario {
namespace scenario_test {

ScenarioOptions Small(uint64_t seed) {
  ScenarioOptions options;
  options.seed = seed;
  options.faulty_nanos = 3'000'000;
  return options;
}

// One child process per run, because a simulation leaks the objects of dead nodes.
ScenarioReport RunInChild(const ScenarioOptions& options) {
  ScenarioReport result;
  const Status status =
      RunSweep({.first_seed = options.seed, .seeds = 1, .scenario = options}, [&](const ScenarioReport& report) {
        result = report;
        return true;
      });
  EXPECT_TRUE(status.ok()) << status;
  return result;
}

TEST(ScenarioTest, TheSameSeedGivesTheSameRun) {
  for (const uint64_t seed : {1, 2, 3, 4}) {
    const ScenarioReport first = RunInChild(Small(seed));
    const ScenarioReport second = RunInChild(Small(seed));
    EXPECT_EQ(first.digest, second.digest) << seed;
    EXPECT_EQ(first.events, second.events) << seed;
    EXPECT_EQ(first.committed, second.committed) << seed;
    EXPECT_EQ(first.virtual_nanos, second.virtual_nanos) << seed;
  }
}

TEST(ScenarioTest, ASecondRunInTheSameProcessIsTheSame) {
  ScenarioOptions options = Small(5);
  options.durability = "none";
  options.power_cuts = 0;
  const ScenarioReport first = RunScenario(options);
  const ScenarioReport second = RunScenario(options);
  EXPECT_EQ(first.digest, second.digest);
  EXPECT_EQ(first.verdict, second.verdict);
}

TEST(ScenarioTest, OtherSeedsGiveOtherRuns) {
  EXPECT_NE(RunInChild(Small(1)).digest, RunInChild(Small(2)).digest);
}

TEST(ScenarioTest, ASweepKnowsWhichMarksItsSeedsReached) {
  MarkTally tally;
  EXPECT_TRUE(tally.seeds().contains("hash: a bucket splits"));
  EXPECT_EQ(tally.NeverReached().size(), tally.seeds().size());
  size_t reached = 0;
  for (const uint64_t seed : {1, 2, 3}) {
    const ScenarioReport report = RunInChild(Small(seed));
    for (const auto& [mark, times] : report.marks) {
      EXPECT_TRUE(tally.seeds().contains(mark)) << mark;
      EXPECT_GT(times, 0u) << mark;
    }
    reached = std::max(reached, report.marks.size());
    tally.Add(report);
  }
  EXPECT_GT(reached, 0u);
  EXPECT_LE(tally.NeverReached().size(), tally.seeds().size() - reached);
  EXPECT_EQ(RunInChild(Small(1)).marks, RunInChild(Small(1)).marks);
}

TEST(ScenarioTest, WithoutFaultsNothingIsRefused) {
  ScenarioOptions options = Small(11);
  options.faults = rdma::sim::Faults{};
  options.durability = "sync";
  options.power_cuts = 0;
  const ScenarioReport report = RunInChild(options);
  EXPECT_TRUE(report.passed) << report.verdict << "\n" << report.details;
  EXPECT_GT(report.committed, 0u);
  EXPECT_EQ(report.unknown, 0u);
}

// The last node of this seed has one client, whose transaction scans all of eight keys while three others change them.
// It loses for longer than the scenario waits for a node that is stuck.
TEST(ScenarioTest, WhoOnlyLosesIsNotStuck) {
  ScenarioOptions options = Small(80015338);
  options.faulty_nanos = 2'000'000;
  const ScenarioReport report = RunInChild(options);
  EXPECT_TRUE(report.passed) << report.verdict << "\n" << report.details;
}

// Other transactions commit between the two steps in which a list is read. That is a conflict, not a failure.
TEST(ScenarioTest, NoTransactionOnListsFailsWithoutFaults) {
  ScenarioOptions options = Small(4);
  options.workload = "append";
  options.nodes = 3;
  options.keys = 4;
  options.durability = "none";
  options.deaths = 0;
  options.faults = rdma::sim::Faults{.preempt = 0.01};
  const ScenarioReport report = RunInChild(options);
  EXPECT_TRUE(report.passed) << report.verdict << "\n" << report.details;
  EXPECT_GT(report.committed, 0u);
  EXPECT_EQ(report.failed, 0u);
}

TEST(ScenarioTest, WhatSurvivesAPowerCutIsWhatWasAcknowledged) {
  for (const uint64_t seed : {21, 22, 23}) {
    ScenarioOptions options = Small(seed);
    options.durability = "sync";
    options.power_cuts = 2;
    const ScenarioReport report = RunInChild(options);
    EXPECT_TRUE(report.passed) << seed << ": " << report.verdict << "\n" << report.details;
    EXPECT_EQ(report.power_cuts, 2u);
  }
}

TEST(ScenarioTest, WhatIsThereIsCheckedAtAllMomentsThatTheScenarioNames) {
  for (const char* workload : {"registers", "rectangles", "append", "tpcc"}) {
    ScenarioOptions options = Small(31);
    options.workload = workload;
    options.nodes = 2;
    options.durability = "none";
    options.client = true;
    options.deaths = 1;
    options.checks = 2;
    const ScenarioReport report = RunInChild(options);
    EXPECT_TRUE(report.passed) << workload << ": " << report.verdict << "\n" << report.details;
    EXPECT_EQ(report.checks, 2u) << workload;
    EXPECT_EQ(report.deaths, 1u) << workload;
  }
}

TEST(ScenarioTest, TpccWithALogOutlivesItsNodes) {
  ScenarioOptions options = Small(41);
  options.workload = "tpcc";
  options.nodes = 2;
  options.durability = "sync";
  options.power_cuts = 1;
  options.deaths = 2;
  options.checks = 1;
  const ScenarioReport report = RunInChild(options);
  EXPECT_TRUE(report.passed) << report.verdict;
  EXPECT_EQ(report.power_cuts, 1u);
  EXPECT_EQ(report.deaths, 2u);
}

TEST(ScenarioTest, TpccWithoutALogDoesNotLoseItsRows) {
  ScenarioOptions options;
  options.workload = "tpcc";
  options.nodes = 3;
  options.durability = "none";
  options.client = false;
  options.deaths = 2;
  EXPECT_EQ(Drawn(options).deaths, 0);
  options.client = true;
  EXPECT_EQ(Drawn(options).deaths, 2);
}

TEST(ScenarioTest, AScenarioIsReadAsItIsWritten) {
  const ScenarioOptions drawn = Drawn(Small(7));
  ScenarioOptions read;
  const Status status = ReadScenario(ToJson(drawn).dump(), &read);
  ASSERT_TRUE(status.ok()) << status;
  read.seed = drawn.seed;
  EXPECT_EQ(ToJson(read).dump(), ToJson(drawn).dump());
  EXPECT_EQ(Describe(Drawn(read)), Describe(drawn));
}

TEST(ScenarioTest, AWrongScenarioIsRefusedByItsField) {
  ScenarioOptions options;
  EXPECT_NE(ReadScenario("[]", &options).message().find("object"), absl::string_view::npos);
  EXPECT_NE(ReadScenario(R"({"knodes": 1})", &options).message().find("knodes"), absl::string_view::npos);
  EXPECT_NE(ReadScenario(R"({"nodes": "x"})", &options).message().find("nodes"), absl::string_view::npos);
  EXPECT_NE(ReadScenario(R"({"faults": {"preempt": -1}})", &options).message().find("preempt"),
            absl::string_view::npos);
  EXPECT_NE(ReadScenario(R"({"faults": {"rain": 1}})", &options).message().find("rain"), absl::string_view::npos);
}

TEST(ScenarioTest, AScenarioThatCannotBeRunIsRefusedByItsField) {
  const auto refused = [](const char* field, auto change) {
    ScenarioOptions options;
    EXPECT_TRUE(CheckScenario(options).ok());
    change(&options);
    const Status status = CheckScenario(options);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << field;
    EXPECT_NE(status.message().find(field), absl::string_view::npos) << status;
  };
  refused("workload", [](ScenarioOptions* o) { o->workload = "bank"; });
  refused("nic", [](ScenarioOptions* o) { o->nic = "cx9"; });
  refused("durability", [](ScenarioOptions* o) { o->durability = "async"; });
  refused("nodes", [](ScenarioOptions* o) { o->nodes = -1; });
  refused("coroutines", [](ScenarioOptions* o) { o->coroutines = 1000; });
  refused("keys", [](ScenarioOptions* o) { o->keys = UINT64_MAX; });
  refused("checks", [](ScenarioOptions* o) { o->checks = -2; });
  refused("faulty_nanos", [](ScenarioOptions* o) { o->faulty_nanos = 0; });
}

}  // namespace scenario_test
}  // namespace gannet::scenario
