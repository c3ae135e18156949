// The history that `gannet crashtest --workload append --elle` writes for nodes that are killed and recover.
#include <unistd.h>

#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/program.h"
#include "tests/lab/scenario/elle_file.h"

namespace gannet::cli {
namespace crash_history_test {

using ::testing::HasSubstr;

TEST(CrashHistoryTest, IsOneThatElleAccepts) {
  const std::string path = testing::TempDir() + "crash_history_test_" + std::to_string(getpid()) + ".edn";
  const Outcome outcome = RunProgram({"crashtest", "--workload", "append", "--nodes", "2", "--cycles", "4",
                                      "--cycle-time", "100ms", "--kill-point", "none", "--elle", path});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("strictly serializable"));
  const std::vector<scenario::Op> history = scenario::ReadHistory(path);
  ASSERT_GT(history.size(), 20u);
  scenario::ExpectAccepted(history);
  std::set<std::string> types;
  for (const scenario::Op& op : history) types.insert(op.type);
  EXPECT_EQ(types, (std::set<std::string>{"invoke", "ok", "info"}))
      << "what was running when a child was killed is :info";
  EXPECT_EQ(history.back().type, "ok") << "the end state is read back";
  std::remove(path.c_str());
}

TEST(CrashHistoryTest, RefusesWhatMakesNoHistory) {
  EXPECT_EQ(RunProgram({"crashtest", "--elle", "/tmp/x"}).exit_code, 2);
  EXPECT_EQ(RunProgram({"crashtest", "--workload", "append", "--elle", "/nowhere/x"}).exit_code, 2);
  const Outcome async = RunProgram({"crashtest", "--workload", "append", "--mode", "async"});
  EXPECT_EQ(async.exit_code, 2);
  EXPECT_THAT(async.err, HasSubstr("--mode async"));
}

}  // namespace crash_history_test
}  // namespace gannet::cli
