// The shell, help, and what is said of mistyped words, by running the program.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/program.h"

namespace gannet::cli {
namespace shell_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
namespace fs = std::filesystem;

class ShellTest : public ::testing::Test {
 protected:
  ShellTest() {
    fs::remove_all(scratch_);
    fs::create_directories(scratch_);
  }
  ~ShellTest() override { fs::remove_all(scratch_); }

  std::string Path(const std::string& name) const { return (scratch_ / name).string(); }

  Outcome Shell(const std::string& lines, const std::vector<std::string>& flags = {}) const {
    std::ofstream(Path("input")) << lines;
    std::vector<std::string> arguments = {"shell", Path("data"), "--memory-per-node", "1G"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return RunProgram(arguments, {.in = Path("input")});
  }

  const fs::path scratch_ =
      fs::path(::testing::TempDir()) /
      (std::string("gannet_shell_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(ShellTest, CommandsAndTransactionsAreDurable) {
  std::ofstream(Path("more.csv")) << "key,payload\nRome,Italy\n";
  const Outcome first = Shell(
      "# Comments and empty lines are left out.\n\n"
      "create-table cities --key bytes --payload 20\n"
      "put cities 'San Juan' \"Puerto Rico\"\n"
      "begin\n"
      "put cities Oslo Norway\n"
      "get cities Oslo\n"
      "scan cities\n"
      "commit\n"
      "begin\n"
      "delete cities Oslo\n"
      "count cities\n"
      "abort\n"
      "import cities " +
          Path("more.csv") +
          "\n"
          "count cities\n"
          "create-table scratch --payload 1\n"
          "drop-table scratch\n"
          "quit\n"
          "put cities Bern Switzerland\n",
      {"--create"});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_EQ(first.out, "Norway\nOslo\tNorway\nSan Juan\tPuerto Rico\n1\n3\n");
  const Outcome second = Shell("scan cities");  // the last line needs no end
  EXPECT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(second.out, "Oslo\tNorway\nRome\tItaly\nSan Juan\tPuerto Rico\n");
}

TEST_F(ShellTest, ReadsByAnIndexSeeTheOpenTransaction) {
  const Outcome outcome = Shell(
      "create-table cities --key bytes --payload 20\n"
      "put cities Oslo Norway\n"
      "create-index cities by_country --field text:0:0 --unique\n"
      "begin\n"
      "put cities Rome Italy\n"
      "put cities Oslo Norge\n"
      "scan cities --by by_country\n"
      "get cities Norge --by by_country\n"
      "count cities --by by_country --from Norway\n"
      "abort\n"
      "scan cities --by by_country\n"
      "get cities Norge --by by_country\n",
      {"--create"});
  EXPECT_EQ(outcome.out, "Rome\tItaly\nOslo\tNorge\nNorge\n0\nOslo\tNorway\n");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.err,
            "get: there is no such row: index 'by_country' of table 'cities', key (\"Norge\")\n  in line 12\n");
}

TEST_F(ShellTest, ATerminalHasAHistoryThatOutlivesTheShell) {
  setenv("GANNET_HISTORY", Path("history").c_str(), 1);
  setenv("TERM", "vt100", 1);
  const auto type = [this](const std::vector<std::string>& lines, const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = {"shell", Path("data"), "--memory-per-node", "1G"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    Program program(arguments, {.all_is_terminal = true});
    EXPECT_TRUE(program.WaitForStdout("> "));
    for (const std::string& line : lines) program.Type(line);
    return program.Wait();
  };
  const Outcome first = type(
      {"create-table t --key bytes --payload 20\n", "put t Oslo Norway\n", "get t Oslo\n", "quit\n"}, {"--create"});
  EXPECT_EQ(first.exit_code, 0) << first.out;
  EXPECT_EQ(fs::status(Path("history")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  // Ctrl-P twice is the line before `quit`. Nothing that is typed here says Norway.
  const std::string up = "\x10";
  const Outcome second = type({up + up + "\n", "quit\n"}, {});
  EXPECT_EQ(second.exit_code, 0) << second.out;
  EXPECT_THAT(second.out, AllOf(HasSubstr("get t Oslo"), HasSubstr("Norway")));
  // None is kept if the file has no name; one that cannot be written is told.
  fs::remove(Path("history"));
  setenv("GANNET_HISTORY", "", 1);
  EXPECT_EQ(type({"quit\n"}, {}).exit_code, 0);
  setenv("GANNET_HISTORY", Path("no/such/history").c_str(), 1);
  EXPECT_THAT(type({"quit\n"}, {}).out, HasSubstr("the history is not kept"));
  EXPECT_FALSE(fs::exists(Path("history")));
  unsetenv("GANNET_HISTORY");
}

// The shell ends also while a person has typed half a line.
TEST_F(ShellTest, CtrlCEndsItAtATerminal) {
  setenv("GANNET_HISTORY", "", 1);
  Program program({"shell", Path("data"), "--memory-per-node", "1G", "--create"}, {.all_is_terminal = true});
  ASSERT_TRUE(program.WaitForStdout("> "));
  program.Type("get t");
  program.Signal(SIGINT);
  const Outcome outcome = program.Wait();
  EXPECT_EQ(outcome.exit_code, 130) << outcome.out;
  unsetenv("GANNET_HISTORY");
}

TEST_F(ShellTest, AnErrorNamesItsLineAndDoesNotEndTheShell) {
  const Outcome outcome = Shell(
      "create-table numbers --payload 3\n"
      "get numbers 1\n"
      "put numbers one x\n"
      "put numbers 1 four\n"
      "puts numbers 1 x\n"
      "put 'numbers\n"
      "commit\n"
      "begin\n"
      "begin\n"
      "create-table more --payload 3\n"
      "import numbers /dev/null --csv\n"
      "abort\n"
      "put numbers 1 x\n"
      "get people 1\n"
      "get numbers 1\n",
      {"--create"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_EQ(outcome.out, "x\n");
  for (const char* says :
       {"get: there is no such row: table 'numbers', key 1\n  in line 2\n", "put: KEY one: must be an integer key",
        "put: a payload of 4 bytes does not fit", "there is no command 'puts'; did you mean put?\n  in line 5\n",
        "the quote ' is not closed", "commit: no transaction is open; begin one first\n  in line 7\n",
        "begin: a transaction is open already", "create-table: create-table is not a part of a transaction",
        "import: import, which makes transactions of its own, is not a part of a transaction",
        "has no table 'people'; it has numbers"}) {
    EXPECT_THAT(outcome.err, HasSubstr(says));
  }
}

// The first files that are opened would get the numbers of closed streams.
TEST_F(ShellTest, WithoutStandardOutputNothingIsWrittenIntoFilesOfTheDatabase) {
  ASSERT_EQ(Shell("create-table cities --key bytes --payload 20\n", {"--create"}).exit_code, 0);
  std::ofstream(Path("input")) << "put cities Oslo Norway\nget cities Oslo\nno such command\n";
  EXPECT_EQ(RunProgram({"shell", Path("data")}, {.output_is_closed = true, .in = Path("input")}).exit_code, 1);
  std::ifstream lock(Path("data/LOCK"));
  const std::string content((std::istreambuf_iterator<char>(lock)), std::istreambuf_iterator<char>());
  EXPECT_THAT(content, Not(HasSubstr("Norway")));
  EXPECT_THAT(content, Not(HasSubstr("command")));
  const Outcome row = RunProgram({"get", Path("data"), "cities", "Oslo"});
  EXPECT_EQ(row.out, "Norway\n") << row.err;
}

TEST_F(ShellTest, ATransactionThatIsLeftOpenIsNotDone) {
  const Outcome outcome = Shell(
      "create-table numbers --payload 3\n"
      "begin\n"
      "put numbers 1 x\n",
      {"--create"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("the open transaction was not committed: nothing of it was done"));
  EXPECT_EQ(Shell("count numbers\n").out, "0\n");
}

TEST_F(ShellTest, WithoutADatabaseItSaysWhatToDo) {
  const Outcome outcome = Shell("tables\n");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("holds no database"), HasSubstr("--create makes a new database")));
  EXPECT_FALSE(fs::exists(Path("data")));
}

TEST_F(ShellTest, HelpListsItsCommands) {
  const Outcome outcome = Shell("help\nget --help\n", {"--create"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* says : {"begin", "commit", "create-table", "Print the payload of one row."}) {
    EXPECT_THAT(outcome.out, HasSubstr(says));
  }
  EXPECT_THAT(outcome.out, Not(HasSubstr("DIR")));
}

TEST(HelpTest, ExplainsCommandsOfEveryDepth) {
  const Outcome all = RunProgram({"help"});
  EXPECT_EQ(all.exit_code, 0);
  EXPECT_EQ(all.out, RunProgram({"--help"}).out);
  EXPECT_THAT(all.out, AllOf(HasSubstr("create-table"), HasSubstr("shell"), HasSubstr("tpcc")));
  EXPECT_EQ(RunProgram({"help", "tpcc", "run"}).out, RunProgram({"tpcc", "run", "--help"}).out);
  EXPECT_EQ(RunProgram({"help", "scan"}).out, RunProgram({"scan", "--help"}).out);
  const Outcome wrong = RunProgram({"help", "sacn"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_EQ(wrong.err, "gannet help: gannet has no command 'sacn'; did you mean scan?\n");
  EXPECT_THAT(RunProgram({"help", "tpcc", "fly"}).err, HasSubstr("gannet tpcc has no command 'fly'; it has: prepare"));
}

TEST(HelpTest, MistypedWordsAreGuessed) {
  struct Typed {
    std::vector<std::string> words;
    std::string error;
  };
  const std::vector<Typed> all = {
      {{"scna", "data"}, "gannet: there is no command 'scna'; did you mean scan? (see gannet --help)\n"},
      {{"tpcc", "runn"}, "gannet tpcc: there is no command 'runn'; did you mean run? (see gannet tpcc --help)\n"},
      {{"get", "data", "t", "1", "--keyz", "hex"},
       "gannet get: --keyz: there is no such flag; did you mean --keys? (see gannet get --help)\n"},
      {{"tpcc", "run", "--warehouse=2"},
       "gannet tpcc run: --warehouse=2: there is no such flag; did you mean --warehouses? (see gannet tpcc run "
       "--help)\n"},
  };
  for (const Typed& typed : all) {
    const Outcome outcome = RunProgram(typed.words);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.err, typed.error);
  }
  EXPECT_THAT(RunProgram({"xyz"}).err, AllOf(HasSubstr("give a command: tpcc"), Not(HasSubstr("did you mean"))));
}

TEST_F(ShellTest, TheNamesOfTablesAreCompleted) {
  EXPECT_EQ(Shell("create-table cities --payload 1\ncreate-table people --payload 1\n", {"--create"}).exit_code, 0);
  std::ofstream(Path("gannet.bash")) << RunProgram({"completion", "bash"}).out;
  const auto complete = [this](const std::string& words) {
    const std::string command =
        "bash -c 'source " + Path("gannet.bash") + "; COMP_WORDS=(" + GANNET_PROGRAM + " " + words +
        "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _gannet; echo \"${COMPREPLY[*]}\"' > " + Path("result");
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::string line;
    std::getline(std::ifstream(Path("result")) >> std::ws, line);
    return line;
  };
  EXPECT_EQ(complete("scan " + Path("data") + " c"), "cities");
  EXPECT_EQ(complete("scan --memory-per-node 1G " + Path("data") + " \"\""), "cities people");
  EXPECT_EQ(complete("export " + Path("data") + " --table p"), "people");
  EXPECT_EQ(complete("scan " + Path("data") + " cities c"), "") << "a key";
}

TEST_F(ShellTest, TabCompletesAtATerminal) {
  setenv("GANNET_HISTORY", "", 1);
  setenv("TERM", "vt100", 1);
  EXPECT_EQ(Shell("create-table cities --key bytes --payload 20\nput cities Oslo Norway\n", {"--create"}).exit_code, 0);
  Program program({"shell", Path("data"), "--memory-per-node", "1G"}, {.all_is_terminal = true});
  EXPECT_TRUE(program.WaitForStdout("> "));
  program.Type("sc\tci\t--li\t1\n");  // scan cities --limit 1
  EXPECT_TRUE(program.WaitForStdout("Norway"));
  program.Type("cr\t");  // create- is common, and only what is new is written
  EXPECT_TRUE(program.WaitForStdout("eate-"));
  program.Type("\t");
  EXPECT_TRUE(program.WaitForStdout("create-table  create-index"));
  program.Type("t\tmore --payload 1 --key by\t\nquit\n");
  const Outcome outcome = program.Wait();
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out;
  EXPECT_THAT(RunProgram({"tables", Path("data")}).out, HasSubstr("more    up to 64 bytes"));
}

TEST(HelpTest, CompletionAndManPageHaveEveryCommand) {
  const Outcome man = RunProgram({"completion", "man"});
  EXPECT_EQ(man.exit_code, 0);
  EXPECT_THAT(man.out, AllOf(StartsWith(".TH GANNET 1"), HasSubstr(".BR gannet\\-tpcc\\-run (1)\n")));
  EXPECT_LT(std::ranges::count(man.out, '\n'), 150) << "a page that nobody reads";
  const fs::path pages = fs::path(::testing::TempDir()) / "gannet_man_pages";
  EXPECT_EQ(RunProgram({"completion", "man", "--out", pages.string()}).exit_code, 0);
  const auto page = [&pages](const std::string& name) {
    std::ifstream file(pages / (name + ".1"));
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_EQ(page("gannet"), man.out);
  EXPECT_THAT(page("gannet-tpcc-run"), StartsWith(".TH GANNET\\-TPCC\\-RUN 1 "));
  EXPECT_THAT(page("gannet-scan"), AllOf(HasSubstr(".B gannet scan\n.I DIR TABLE [FLAGS]\n"),
                                         HasSubstr(".B \\-\\-limit N\n"), Not(HasSubstr("warehouses"))));
  fs::remove_all(pages);
  EXPECT_EQ(RunProgram({"completion", "fish"}).exit_code, 2);
  // bash itself completes words with the script.
  const fs::path script = fs::path(::testing::TempDir()) / "gannet_completion.bash";
  std::ofstream(script) << RunProgram({"completion", "bash"}).out;
  const fs::path result = fs::path(::testing::TempDir()) / "gannet_completion.txt";
  const auto complete = [&](const std::string& words) {
    const std::string command = "bash -c 'source " + script.string() + "; COMP_WORDS=(gannet " + words +
                                "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _gannet; echo \"${COMPREPLY[*]}\"' > " +
                                result.string();
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::string line;
    std::getline(std::ifstream(result) >> std::ws, line);
    return line;
  };
  EXPECT_EQ(complete("cr"), "create-table create-index crashtest");
  EXPECT_EQ(complete("tpcc r"), "run");
  EXPECT_EQ(complete("scan data cities --p"), "--prefix --payloads");
  EXPECT_EQ(complete("scan data cities --b"), "--by");
  EXPECT_EQ(complete("tpcc run --ordered-index x"), "xstore");
  EXPECT_EQ(complete("create-table data t --key \"\""), "integer bytes");
  EXPECT_EQ(complete("completion z"), "zsh");
  fs::remove(script);
  fs::remove(result);
}

// zsh runs the function; in the place of its completion system stand functions that print what they are given.
TEST(HelpTest, ZshCompletesCommandsAndFlags) {
  if (std::system("command -v zsh >/dev/null") != 0) GTEST_SKIP() << "there is no zsh";
  const fs::path script = fs::path(::testing::TempDir()) / "gannet_completion.zsh";
  std::ofstream(script) << RunProgram({"completion", "zsh"}).out;
  const fs::path result = fs::path(::testing::TempDir()) / "gannet_completion.zsh.txt";
  const auto complete = [&](const std::string& words) {
    const std::string command =
        "zsh -f -c 'compdef() { [[ $2 == gannet ]] }; "
        "_describe() { print -rl -- ${(P)@[-1]} }; _files() { print files }; source " +
        script.string() + " || exit 1; words=(gannet " + words + "); CURRENT=$#words; _gannet' > " + result.string();
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::ifstream file(result);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_THAT(complete("cr"), AllOf(StartsWith("tpcc:The TPC-C benchmark: nine"), HasSubstr("\ncreate-table:")));
  EXPECT_THAT(complete("tpcc r"), AllOf(HasSubstr("run:Load the tables"), Not(HasSubstr("ycsb"))));
  EXPECT_THAT(complete("tpcc run --d"), AllOf(HasSubstr("\n--duration:How long to measure"), HasSubstr("--dir:")));
  EXPECT_EQ(complete("tpcc run --json r"), "files\n");
  EXPECT_EQ(complete("scan data cit"), "files\n");
  fs::remove(script);
  fs::remove(result);
}

}  // namespace shell_test
}  // namespace gannet::cli
