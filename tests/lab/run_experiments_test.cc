// Runs of experiments are processes that a program with threads forks.
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "lab/experiments/run.h"
#include "lab/experiments/xstore/xstore.h"

namespace gannet::experiments {
namespace run_experiments_test {

// Nothing that another thread of the parent may have locked at the fork: its progress has a mutex. A run that calls it
// ends here, so that its experiment fails.
TEST(RunExperimentsTest, RunsCallNoProgressOfTheParent) {
  const pid_t parent = getpid();
  int loads = 0;
  const auto called = [&] {
    if (getpid() != parent) _exit(1);
    ++loads;
  };
  const RunExperimentsOptions options = {.progress = [&](size_t, size_t, const std::string&) { called(); },
                                         .ycsb_progress = {.step = [&](const std::string&) { called(); },
                                                           .loaded = [&](uint64_t, uint64_t) { called(); },
                                                           .ran = [&](const ycsb::IntervalReport&) { called(); }}};
  Options rack;
  rack.keys = 2000;
  rack.clients = {.machines = 2, .threads = 2};
  rack.scale = 0.01;
  std::vector<Experiment> experiments = {xstore::Fig15d(rack)};
  ASSERT_GT(experiments[0].points.size(), 2U);
  EXPECT_EQ(RunExperiments(options, &experiments), absl::OkStatus());
  EXPECT_GT(loads, 0);

  // A single point loads its keys in its own process.
  experiments[0].points.resize(1);
  loads = 0;
  EXPECT_EQ(RunExperiments(options, &experiments), absl::OkStatus());
  EXPECT_EQ(loads, 2) << "the beginning and the end";
}

}  // namespace run_experiments_test
}  // namespace gannet::experiments
