// Ctrl-C during each long command: it ends soon, says what was stopped and what remains, and leaves nothing else.
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/program.h"

namespace gannet::cli {
namespace interrupt_test {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

// A command may end before the signal arrives: then the test tries again, at most this often.
constexpr int kAttempts = 20;

struct Stopped {
  std::string name;
  std::vector<std::string>
      arguments;      // DATA: a database; STORE: a file in memory; HERE: an empty directory, which is $TMPDIR, too
  std::string phase;  // what stderr says when the signal is sent
  std::string says;   // what it then says on stderr
  int signal = SIGINT;
  std::set<std::string> left = {};  // files left in HERE
};

class InterruptTest : public ::testing::TestWithParam<Stopped> {
 protected:
  static void SetUpTestSuite() {
    fs::remove_all(Root());
    fs::create_directories(Root());
    const Outcome made = RunProgram(
        {"tpcc", "prepare", "--warehouses", "2", "--dir", Root() / "data", "--create", "--memory-per-node", "1G"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  static void TearDownTestSuite() { fs::remove_all(Root()); }

  static fs::path Root() { return fs::path(::testing::TempDir()) / absl::StrCat("gannet_interrupt_", getpid()); }
  static fs::path Store() { return absl::StrCat("/dev/shm/gannet_interrupt_", getpid()); }
  static fs::path Here() { return Root() / "here"; }

  static std::string Placed(const std::string& text) {
    return absl::StrReplaceAll(
        text, {{"DATA", (Root() / "data").string()}, {"HERE", Here().string()}, {"STORE", Store().string()}});
  }
  static std::vector<std::string> AllPlaced(std::vector<std::string> arguments) {
    for (std::string& argument : arguments) argument = Placed(argument);
    return arguments;
  }

  static std::set<std::string> NamesIn(const fs::path& directory) {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory)) names.insert(entry.path().filename());
    return names;
  }

  // Runs the command in a new HERE until it prints `phase`, and sends the signal.
  static Outcome Stop(const Stopped& what) {
    Outcome outcome;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      fs::remove_all(Here());
      fs::create_directories(Here());
      Program program(AllPlaced(what.arguments), {.err_is_terminal = true, .temporary_directory = Here()});
      EXPECT_TRUE(program.WaitForStderr(Placed(what.phase))) << program.heard_on_stderr();
      program.Signal(what.signal);
      outcome = program.Wait();
      if (outcome.exit_code != 0) break;
    }
    return outcome;
  }
};

TEST_P(InterruptTest, EndsTheCommandWithOneLineAndNoRest) {
  const Outcome outcome = Stop(GetParam());
  EXPECT_EQ(outcome.exit_code, 128 + GetParam().signal) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.err, HasSubstr(Placed(GetParam().says)));
  EXPECT_THAT(outcome.err, HasSubstr("\ngannet " + GetParam().arguments[0])) << "a line of its own";
  EXPECT_EQ(NamesIn(Here()), GetParam().left);
  EXPECT_FALSE(fs::exists(Store()));
}

std::vector<Stopped> Commands() {
  const std::vector<std::string> load = {"--warehouses", "20"};
  const auto tpcc = [](const std::string& verb, std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"tpcc", verb});
    return flags;
  };
  return {
      {"Load", tpcc("prepare", load), "loading: 1 of 80 parts", "gannet tpcc prepare: stopped while rows"},
      {"LoadOfARun", tpcc("run", load), "loading: 1 of 80 parts", "no data is kept"},
      {"LoadOfACheck", tpcc("check", load), "loading: 1 of 80 parts", "no data is kept", SIGTERM},
      {"LoadInAStore", tpcc("run", {"--warehouses", "20", "--nodes", "2", "--store", "STORE"}),
       "loading: 1 of 80 parts", "no data is kept"},
      {"LoadOfADirectory",
       tpcc("prepare", {"--warehouses", "20", "--dir", "HERE/new", "--create"}),
       "loading: 1 of 80 parts",
       "HERE/new has a load that did not finish; gannet tpcc prepare --dir HERE/new loads it again",
       SIGINT,
       {"new"}},
      {"FirstCheckpoint",
       tpcc("prepare", {"--warehouses", "2", "--dir", "HERE/new", "--create"}),
       "writing the first checkpoint",
       "stopped while a checkpoint was written; HERE/new has a load that did not finish",
       SIGINT,
       {"new"}},
      {"Recovery", tpcc("check", {"--dir", "DATA"}), "recovering DATA", "DATA still has its data"},
      {"Recover", {"recover", "DATA"}, "recovering DATA", "gannet recover: stopped while"},
      {"Verify", {"verify", "DATA"}, "verifying DATA", "stopped while the directory was checked; nothing was changed"},
      {"Export",
       {"export", "DATA", "--table", "order_line", "--out", "HERE/rows.csv"},
       "exporting from DATA",
       "HERE/rows.csv is unchanged"},
      {"ExportToStandardOutput",
       {"export", "DATA", "--table", "order_line"},
       "exporting from DATA",
       "the output is not complete"},
      {"Backup", {"backup", "DATA", "HERE/copy"}, "copying DATA", "HERE/copy is removed"},
      {"BackupByTerm", {"backup", "DATA", "HERE/copy"}, "copying DATA", "HERE/copy is removed", SIGTERM},
      {"Restore", {"restore", "DATA", "HERE/copy"}, "restoring DATA", "gannet restore: stopped while"},
      {"YcsbLoad", {"ycsb", "--keys", "10M"}, "loading: 0 of 10,000,000", "stopped while keys were loaded"},
      {"SimOfOneSeed", {"sim", "--until", "1000s"}, "running seed 1", "without a verdict"},
      {"SimOfTpcc", {"sim", "--workload", "tpcc", "--until", "1000s"}, "running seed 1", "without a verdict"},
      {"SimWithATrace",
       {"sim", "--until", "1000s", "--trace", "HERE/trace"},
       "running seed 1",
       "HERE/trace has the events until then",
       SIGINT,
       {"trace"}},
  };
}

INSTANTIATE_TEST_SUITE_P(All, InterruptTest, ::testing::ValuesIn(Commands()),
                         [](const auto& test) { return test.param.name; });

class InterruptedTest : public InterruptTest {};

// A load that was stopped leaves a directory that only another load can use.
TEST_P(InterruptedTest, LeavesADirectoryThatIsLoadedAgain) {
  ASSERT_EQ(Stop(GetParam()).exit_code, 130);
  const Outcome check = RunProgram(AllPlaced({"tpcc", "check", "--dir", "HERE/new"}));
  EXPECT_EQ(check.exit_code, 2) << check.err;
  EXPECT_THAT(check.err, HasSubstr("has a load that did not finish"));
  const Outcome again = RunProgram(AllPlaced({"tpcc", "prepare", "--dir", "HERE/new"}));
  EXPECT_EQ(again.exit_code, 0) << again.err;
  const Outcome whole = RunProgram(AllPlaced({"tpcc", "check", "--dir", "HERE/new"}));
  EXPECT_EQ(whole.exit_code, 0) << whole.err << whole.out;
}

INSTANTIATE_TEST_SUITE_P(
    All, InterruptedTest,
    ::testing::Values(Stopped{"Load",
                              {"tpcc", "prepare", "--warehouses", "4", "--dir", "HERE/new", "--create"},
                              "loading: 1 of 16 parts",
                              ""},
                      Stopped{"FirstCheckpoint",
                              {"tpcc", "prepare", "--warehouses", "2", "--dir", "HERE/new", "--create"},
                              "writing the first checkpoint",
                              ""}),
    [](const auto& test) { return test.param.name; });

// A file that an export was to replace, and a directory that a backup was to fill, are unchanged.
TEST_F(InterruptTest, KeepsWhatWasThere) {
  const std::string root = Root();
  const fs::path empty = fs::path(root) / "empty";
  fs::create_directories(empty);
  const Outcome outcome = Stop({"", {"backup", "DATA", empty.string()}, "copying DATA", ""});
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr(empty.string() + " is empty again"));
  EXPECT_TRUE(fs::is_empty(empty));
  EXPECT_EQ(RunProgram(AllPlaced({"verify", "DATA"})).exit_code, 0);
}

TEST_F(InterruptTest, AReportIsMadeWhenItIsWritten) {
  fs::remove_all(Here());
  fs::create_directories(Here());
  Program program(AllPlaced({"sim", "--until", "1000s", "--json", "HERE/report.json"}), {.err_is_terminal = true});
  ASSERT_TRUE(program.WaitForStderr("running seed 1"));
  EXPECT_EQ(NamesIn(Here()), std::set<std::string>{}) << "so it does not matter how the program ends";
  program.Signal(SIGINT);
  EXPECT_EQ(program.Wait().exit_code, 130);
}

// The second Ctrl-C also ends the child, and its working directory is still removed.
TEST_F(InterruptTest, TwiceEndsACrashTestAtOnce) {
  fs::remove_all(Here());
  fs::create_directories(Here());
  Program program({"crashtest", "--cycles", "1000000", "--cycle-time", "10ms"},
                  {.err_is_terminal = true, .temporary_directory = Here()});
  ASSERT_TRUE(program.WaitForStderr("2 of 1000000"));
  program.Signal(SIGINT);
  program.Signal(SIGINT);
  const Outcome outcome = program.Wait();
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("stopped after "));
  EXPECT_EQ(NamesIn(Here()), std::set<std::string>{});
}

}  // namespace interrupt_test
}  // namespace gannet::cli
