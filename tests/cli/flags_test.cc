// The program's messages about wrong flags, and its help.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/html_text.h"
#include "tests/cli/program.h"

namespace gannet::cli {
namespace flags_test {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct BadFlags {
  std::string name;
  std::vector<std::string> arguments;
  std::vector<std::string> must_say;  // the flag with its value, and the remedy
};

class BadFlagsTest : public ::testing::TestWithParam<BadFlags> {};

TEST_P(BadFlagsTest, GivesOneClearLineAndExitCode2) {
  const Outcome outcome = RunProgram(GetParam().arguments);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, StartsWith("gannet"));
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  for (const std::string& text : GetParam().must_say) EXPECT_THAT(outcome.err, HasSubstr(text));
}

std::vector<std::string> Run(std::vector<std::string> flags) {
  flags.insert(flags.begin(), {"tpcc", "run"});
  return flags;
}

INSTANTIATE_TEST_SUITE_P(
    All, BadFlagsTest,
    ::testing::Values(
        BadFlags{"NoWarehouses", Run({"--warehouses", "0"}), {"--warehouses 0", "1 to 65535"}},
        BadFlags{"NegativeWarehouses", Run({"--warehouses", "-1"}), {"--warehouses -1", "1 to 65535"}},
        BadFlags{"WarehousesInWords", Run({"--warehouses=two"}), {"--warehouses two", "whole number"}},
        BadFlags{"NoThreads", Run({"--threads", "0"}), {"--threads 0"}},
        BadFlags{"MixOf101", Run({"--mix", "45,43,4,4,5"}), {"--mix 45,43,4,4,5", "sum to 100", "101"}},
        BadFlags{"MixOfFour", Run({"--mix", "50,40,5,5"}), {"--mix 50,40,5,5", "five"}},
        BadFlags{"DurationWithoutUnit", Run({"--duration", "30"}), {"--duration 30", "30s"}},
        BadFlags{"DurationGarbage", Run({"--duration", "soon"}), {"--duration soon", "30s"}},
        BadFlags{"NoDuration", Run({"--duration", "0s"}), {"--duration 0s", "at least"}},
        BadFlags{"NegativeWarmup", Run({"--warmup=-1s"}), {"--warmup -1s", "at least"}},
        BadFlags{"TooManyNodes", Run({"--nodes", "65"}), {"--nodes 65", "1 to 64"}},
        BadFlags{"FewerThreadsThanNodes",
                 Run({"--nodes", "2", "--warehouses", "2", "--threads", "1"}),
                 {"--threads 1", "2 nodes"}},
        BadFlags{"FewerWarehousesThanNodes", Run({"--nodes", "3", "--warehouses", "2"}), {"--warehouses 2", "3 nodes"}},
        BadFlags{
            "TerminalsAndCoroutines", Run({"--think-time", "--coroutines", "8"}), {"--think-time", "--coroutines"}},
        BadFlags{"TerminalsOfAWarehouseTwice",
                 Run({"--think-time", "--threads", "2"}),
                 {"--threads 2", "--think-time", "1 or fewer"}},
        BadFlags{"FewerInFlightThanCoroutines",
                 Run({"--dir", "/tmp/no-such-typo", "--create", "--coroutines", "4", "--in-flight", "2"}),
                 {"--in-flight 2", "--coroutines", "at least 4"}},
        BadFlags{"TooManyThreadsForANode", Run({"--threads", "200"}), {"--threads 200", "--nodes"}},
        BadFlags{"SizeGarbage", Run({"--memory-per-node", "lots"}), {"--memory-per-node lots", "8G"}},
        BadFlags{"MoreMemoryThanThereIs",
                 Run({"--memory-per-node", "900T"}),
                 {"--memory-per-node 900.0 TiB", "give at most"}},
        BadFlags{"MoreWarehousesThanFit",
                 Run({"--warehouses", "1000", "--memory-per-node", "64M"}),
                 {"--warehouses 1000", "--memory-per-node"}},
        BadFlags{"JsonNowhere",
                 Run({"--json", "/no/such/directory/report.json"}),
                 {"--json /no/such/directory/report.json"}},
        BadFlags{"CsvNowhere", Run({"--csv", "/no/such/x.csv"}), {"--csv /no/such/x.csv", "may write"}},
        BadFlags{"HtmlIsADirectory", Run({"--html", "/tmp"}), {"--html /tmp"}},
        BadFlags{"TwoReportsInOneFile", Run({"--json", "-", "--html", "-"}), {"--html -", "--json goes there"}},
        BadFlags{"CsvOfPrepare", {"tpcc", "prepare", "--csv", "x.csv"}, {"--csv: there is no such flag"}},
        BadFlags{"YcsbCsvNowhere", {"ycsb", "--csv", "/no/such/x.csv"}, {"--csv /no/such/x.csv"}},
        BadFlags{"TwoNamesOfOneFile", Run({"--json", "no-such-file", "--csv", "./no-such-file"}), {"--csv", "--json"}},
        BadFlags{"SimTraceInTheReport",
                 {"sim", "--trace", "no-such-file", "--json", "no-such-file"},
                 {"--trace no-such-file: --json goes there"}},
        BadFlags{"SimTraceOnStandardOutput", {"sim", "--trace", "-"}, {"--trace -", "name a file"}},
        BadFlags{"CrashTestHistoryInTheReport",
                 {"crashtest", "--workload", "append", "--elle", "no-such-file", "--html", "no-such-file"},
                 {"--elle no-such-file: --html goes there"}},
        BadFlags{"SimHtmlNowhere", {"sim", "--html", "/no/such/x.html"}, {"--html /no/such/x.html"}},
        BadFlags{"CrashTestHtmlNowhere", {"crashtest", "--html", "/no/such/x.html"}, {"--html /no/such/x.html"}},
        BadFlags{"JsonIsADirectory", Run({"--json", "/tmp"}), {"--json /tmp"}},
        BadFlags{"StoreExists", Run({"--store", "/etc/passwd"}), {"--store /etc/passwd", "exists"}},
        BadFlags{"StoreNowhere", Run({"--store", "/no/such/store"}), {"--store /no/such/store", "/dev/shm"}},
        BadFlags{"StoreInAFile", Run({"--store", "/etc/passwd/store"}), {"--store /etc/passwd/store", "/dev/shm"}},
        BadFlags{"EmptyDirectory", Run({"--dir", ""}), {"--dir", "must not be empty"}},
        BadFlags{"EmptyDirectoryToVerify", {"verify", ""}, {"DIR", "must not be empty"}},
        BadFlags{
            "GroupCommitOfAnHour", Run({"--dir", "x", "--group-commit", "1h"}), {"--group-commit 1h", "at most 1s"}},
        BadFlags{"MoreLogThanDisk",
                 Run({"--dir", "x", "--create", "--log-preallocate", "100000T"}),
                 {"--log-preallocate", "give less"}},
        BadFlags{"PrefaultGarbage", Run({"--prefault", "some"}), {"--prefault some", "or 0"}},
        BadFlags{"ExportWithoutTable", {"export", "data"}, {"--table", "gannet export --help"}},
        BadFlags{"ExportTwoFormats", {"export", "d", "--table", "t", "--csv", "--json"}, {"--csv", "--json"}},
        BadFlags{"DurabilityNowhere", Run({"--durability", "sync"}), {"--durability", "--dir"}},
        BadFlags{"GroupCommitNowhere", Run({"--group-commit", "1ms"}), {"--group-commit", "--dir"}},
        BadFlags{"CheckpointsNowhere", Run({"--checkpoint-every", "1s"}), {"--checkpoint-every", "--dir"}},
        BadFlags{"MediumNowhere", {"tpcc", "prepare", "--medium", "pmem"}, {"--medium", "--dir"}},
        BadFlags{"MediumOfACheck", {"tpcc", "check", "--medium", "pmem"}, {"--medium: there is no such flag"}},
        BadFlags{"WaitForNobody", Run({"--wait", "1s"}), {"--wait", "--cluster"}},
        BadFlags{"ClusterFileThatIsNotThere",
                 Run({"--cluster", "/no/such.toml"}),
                 {"/no/such.toml", "No such file or directory"}},
        BadFlags{"ClusterFileIsADirectory", Run({"--cluster", "/tmp"}), {"cluster file /tmp", "it is a directory"}},
        BadFlags{"MetricsGarbage",
                 {"serve", "--cluster", "c.toml", "--node", "0", "--metrics", "here"},
                 {"--metrics here", "host:port"}},
        BadFlags{"MetricsPortTooLarge",
                 {"serve", "--cluster", "c.toml", "--node", "0", "--metrics", "127.0.0.1:99999"},
                 {"--metrics 127.0.0.1:99999", "host:port"}},
        BadFlags{"DurabilityUnknown", Run({"--durability", "maybe"}), {"--durability maybe", "none, async or sync"}},
        BadFlags{"DirectoryOfSomethingElse", Run({"--dir", "/etc"}), {"--dir /etc", "no database"}},
        BadFlags{"DirectoryThatIsNotThere", Run({"--dir", "/tmp/no-such-typo"}), {"no database", "--create"}},
        BadFlags{"CheckOfNothing",
                 {"tpcc", "check", "--dir", "/tmp/no-such-typo"},
                 {"--dir /tmp/no-such-typo", "no database", "prepare --create"}},
        BadFlags{"CreateNowhere", Run({"--create"}), {"--create", "--dir"}},
        BadFlags{"DirectoryThatIsAFile", Run({"--dir", "/etc/passwd", "--create"}), {"--dir /etc/passwd"}},
        BadFlags{
            "UnknownKillPoint", {"crashtest", "--kill-point", "nowhere"}, {"--kill-point nowhere", "batch-written"}},
        BadFlags{"CrashTestWithoutDurability", {"crashtest", "--mode", "none"}, {"--mode none", "sync or async"}},
        BadFlags{"CrashTestInADirectoryInUse", {"crashtest", "--dir", "/etc"}, {"--dir /etc", "not empty"}},
        BadFlags{"CrashTestInAFile", {"crashtest", "--dir", "/etc/passwd/x"}, {"--dir /etc/passwd/x", "new directory"}},
        BadFlags{"CrashTestNowhere", {"crashtest", "--dir", "/proc/no/x"}, {"--dir /proc/no/x", "cannot be made"}},
        BadFlags{"SimSeedTooLarge",
                 {"sim", "--seed", "18446744073709551615", "--seeds", "3"},
                 {"--seed 18446744073709551615", "whole number"}},
        BadFlags{"SimSeedsBeyondTheLast",
                 {"sim", "--seed", "9223372036854775806", "--seeds", "3"},
                 {"--seeds 3", "there are 2", "fewer"}},
        BadFlags{"SimJobsOfOneSeed", {"sim", "--jobs", "2"}, {"--jobs", "--seeds"}},
        BadFlags{"SimKeepGoingWithOneSeed", {"sim", "--keep-going"}, {"--keep-going", "--seeds"}},
        BadFlags{"SimUntilNextYear", {"sim", "--until", "10000h"}, {"--until 10000h", "at most 1h"}},
        BadFlags{
            "YcsbUnknownWorkload", {"ycsb", "--workload", "g"}, {"--workload g", "a, b, c, d, e, f, load or update"}},
        BadFlags{"YcsbRandomInserts", {"ycsb", "--inserts", "random"}, {"--inserts random", "--keyspace random"}},
        BadFlags{"YcsbTheta", {"ycsb", "--theta", "-1"}, {"--theta -1", "a number from 0 to 5"}},
        BadFlags{"YcsbUnknownIndex",
                 {"ycsb", "--index", "tree"},
                 {"--index tree", "hash, xstore, blink, rolex, dex or dolphin"}},
        BadFlags{"TpccUnorderedIndex",
                 {"tpcc", "run", "--ordered-index", "hash"},
                 {"--ordered-index hash", "xstore, blink, rolex, dex or dolphin"}},
        BadFlags{
            "TpccUnknownRights", {"tpcc", "run", "--index-rights", "all"}, {"--index-rights all", "owner or clients"}},
        BadFlags{"TpccRightsOfXStore",
                 {"tpcc", "run", "--index-rights", "clients"},
                 {"--index-rights clients", "kind xstore"}},
        BadFlags{"YcsbRightsOfHash",
                 {"ycsb", "--index", "hash", "--index-rights", "clients"},
                 {"--index-rights clients", "kind hash"}},
        BadFlags{"YcsbVerbsWithoutRights",
                 {"ycsb", "--index", "blink", "--inline", "--index-rights", "owner", "--insert-path", "one-sided"},
                 {"--insert-path one-sided", "without --index-rights owner"}},
        BadFlags{"CrashtestUnorderedIndex",
                 {"crashtest", "--ordered-index", "catfish"},
                 {"--ordered-index catfish", "xstore, blink, rolex, dex or dolphin"}},
        BadFlags{"YcsbIndexOfRectangles",
                 {"ycsb", "--index", "catfish"},
                 {"--index catfish", "hash, xstore, blink, rolex, dex or dolphin"}},
        BadFlags{"YcsbScansOfHash", {"ycsb", "--index", "hash", "--workload", "e"}, {"--index hash", "xstore"}},
        BadFlags{"YcsbClients", {"ycsb", "--clients", "24"}, {"--clients 24", "15x24"}},
        BadFlags{"YcsbTooManyClients",
                 {"ycsb", "--clients", "64x1"},
                 {"--clients 64x1", "at most 63 machines with 1 server"}},
        BadFlags{"YcsbKeys", {"ycsb", "--keys", "many"}, {"--keys many", "10M"}},
        BadFlags{"YcsbKeysBeyondMemory", {"ycsb", "--keys", "4G"}, {"--keys 4000000000", "give fewer"}},
        BadFlags{"YcsbNicOfShm", {"ycsb", "--nic", "cx4-100g"}, {"--nic cx4-100g", "sim"}},
        BadFlags{"YcsbSpreadOfShm", {"ycsb", "--no-spread"}, {"--no-spread", "sim"}},
        BadFlags{"YcsbUnknownNic", {"ycsb", "--fabric", "sim", "--nic", "fast"}, {"--nic fast", "cx4-100g"}},
        BadFlags{"YcsbMix", {"ycsb", "--mix", "90,20,0,0,0"}, {"--mix 90,20,0,0,0", "sum to 100"}},
        BadFlags{
            "YcsbMixScansHash", {"ycsb", "--index", "hash", "--mix", "0,0,0,100,0"}, {"--index hash", "--mix scans"}},
        BadFlags{"YcsbWritesAndMix",
                 {"ycsb", "--writes", "20", "--mix", "80,0,20,0,0"},
                 {"--mix excludes --writes", "gannet ycsb --help"}},
        BadFlags{"YcsbWrites", {"ycsb", "--writes", "120"}, {"--writes 120", "0 to 100"}},
        BadFlags{"YcsbInserts", {"ycsb", "--inserts", "first"}, {"--inserts first", "spread, append or random"}},
        BadFlags{"YcsbInsertForOfNothing", {"ycsb", "--insert-for", "1s"}, {"--insert-for", "--insert-rate"}},
        BadFlags{"YcsbMoveOfNoParts", {"ycsb", "--move-after", "1s"}, {"--move-after", "--partitioned"}},
        BadFlags{"YcsbPartsWithoutKeys",
                 {"ycsb", "--keys", "1", "--partitioned", "--clients", "2x1"},
                 {"--keys 1", "--partitioned"}},
        BadFlags{
            "YcsbSlicesWithoutKeys",
            {"ycsb", "--keys", "50", "--partitioned", "--clients", "3x1", "--coroutines", "1", "--move-after", "1s"},
            {"--keys 50", "--move-after", "64 or more"}},
        BadFlags{"YcsbMoveWithScans",
                 {"ycsb", "--move-after", "1s", "--partitioned", "--clients", "2x1", "--workload", "e"},
                 {"--move-after", "--mix"}},
        BadFlags{"YcsbInsertRate", {"ycsb", "--insert-rate", "1K"}, {"--insert-rate 1000", "--clients 2x2"}},
        BadFlags{"YcsbColocatedServers", {"ycsb", "--colocated", "--servers", "2"}, {"--colocated", "--servers"}},
        BadFlags{
            "YcsbInlineInHash", {"ycsb", "--inline", "--index", "hash"}, {"--inline", "blink, rolex, dex or dolphin"}},
        BadFlags{"YcsbInlineLarge", {"ycsb", "--inline", "--value-bytes", "16"}, {"--inline", "8 bytes"}},
        BadFlags{"YcsbInlineLocations", {"ycsb", "--inline", "--cache", "locations"}, {"--inline", "no records"}},
        BadFlags{"YcsbInlineUpdates", {"ycsb", "--inline", "--updates", "one-sided"}, {"--updates one-sided", "rolex"}},
        BadFlags{"YcsbInlineInserts",
                 {"ycsb", "--inline", "--insert-path", "one-sided"},
                 {"--insert-path one-sided", "rolex"}},
        BadFlags{"YcsbInsertsOfRecords",
                 {"ycsb", "--index", "blink", "--insert-path", "one-sided"},
                 {"--insert-path one-sided", "--inline"}},
        BadFlags{"YcsbTinyValues", {"ycsb", "--value-bytes", "4"}, {"--value-bytes 4", "8 to 1024"}},
        BadFlags{"DumpWithoutDirectory", {"log", "dump"}, {"DIR", "gannet log dump --help"}},
        BadFlags{
            "UnknownFlag", Run({"--warehouse", "2"}), {"--warehouse: there is no such flag", "gannet tpcc run --help"}},
        BadFlags{"ValueMissing", Run({"--threads"}), {"--threads: needs a value"}},
        BadFlags{"WordThatIsNoFlag", Run({"extra"}), {"'extra'", "takes no such argument", "gannet tpcc run --help"}},
        BadFlags{"NoVerb", {"tpcc"}, {"gannet tpcc --help"}},
        BadFlags{"UnknownVerb", {"tpcc", "walk"}, {"walk", "prepare, run, check"}},
        BadFlags{"NoCommand", {}, {"gannet --help"}},
        BadFlags{"RunFlagOfPrepare",
                 {"tpcc", "prepare", "--mix", "45,43,4,4,4"},
                 {"--mix: there is no such flag", "gannet tpcc prepare --help"}}),
    [](const auto& test) { return test.param.name; });

TEST(Help, OfTheProgramNamesItsCommands) {
  const Outcome outcome = RunProgram({"--help"});
  EXPECT_EQ(outcome.exit_code, 0);
  for (const char* command : {"tpcc", "ycsb", "recover", "verify", "log", "backup", "restore", "crashtest", "sim",
                              "reproduce", "serve", "devices"}) {
    EXPECT_THAT(outcome.out, HasSubstr(command));
  }
  EXPECT_THAT(outcome.out, Not(HasSubstr("crashtest-child"))) << "is not for people";
}

TEST(Help, OfACommandEndsWithItsOwnWords) {
  const Outcome log = RunProgram({"log", "--help"});
  EXPECT_EQ(log.exit_code, 0);
  EXPECT_THAT(log.out, Not(HasSubstr("tpcc")));
  EXPECT_THAT(RunProgram({"--help"}).out, HasSubstr("Start with: gannet tpcc run"));
}

TEST(StandardOutput, ThatIsFullIsAnError) {
  const Outcome outcome = RunProgram({"ycsb", "--help"}, {.out = "/dev/full"});
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("cannot write to standard output"));
}

TEST(StandardOutput, GetsTheJsonOfADash) {
  const Outcome outcome = RunProgram({"sim", "--seed", "1", "--until", "1ms", "--json", "-"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(nlohmann::json::parse(outcome.out).at("passed"), true);
  EXPECT_THAT(outcome.err, HasSubstr("seed 1: ")) << "the report for people";
  EXPECT_FALSE(std::filesystem::exists("-"));
}

TEST(Json, OfACrashTestSaysWhetherItPassed) {
  const Outcome outcome =
      RunProgram({"crashtest", "--cycles", "2", "--cycle-time", "20ms", "--kill-point", "none", "--json", "-"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto report = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(report.at("passed"), true);
  EXPECT_EQ(report.at("cycles"), 2);
  EXPECT_EQ(report.at("operations").at("lost"), 0);
  EXPECT_THAT(outcome.err, HasSubstr("2 cycles with seed")) << "the report for people";
}

TEST(Html, OfASimulationAndOfACrashTestIsOnePage) {
  const std::string path = ::testing::TempDir() + "/gannet_page.html";
  const std::vector<std::vector<std::string>> commands = {
      {"sim", "--seed", "1", "--until", "1ms"},
      {"sim", "--seeds", "3", "--until", "1ms"},
      {"crashtest", "--cycles", "3", "--cycle-time", "20ms", "--kill-point", "none"},
  };
  for (std::vector<std::string> command : commands) {
    SCOPED_TRACE(command[0] + command[1]);
    command.insert(command.end(), {"--html", path});
    const Outcome outcome = RunProgram(command);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
    std::ifstream file(path);
    const std::string html(std::istreambuf_iterator<char>(file), {});
    ExpectSelfContained(html);
    EXPECT_EQ(PlotsOf(html).size(), command[1] == "--seed" ? 0u : 2u);
    EXPECT_THAT(html, HasSubstr("Machine"));
    std::filesystem::remove(path);
  }
}

TEST(Limits, OfTheFileSizeAreAnErrorOfTheWrite) {
  const std::string path = ::testing::TempDir() + "/gannet_file_size_limit.json";
  const Outcome outcome = RunProgram({"sim", "--seed", "1", "--until", "1ms", "--json", path}, {.most_file_bytes = 64});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr(path + ": cannot write it: File too large"));
  std::filesystem::remove(path);
}

// A sanitizer needs more address space than this.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

TEST(Limits, OfTheAddressSpaceAreToldWithWhatToDo) {
  const Outcome outcome =
      RunProgram({"sim", "--seed", "1", "--until", "1ms"}, {.most_address_space_bytes = uint64_t{200} << 20});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_THAT(outcome.out + outcome.err, HasSubstr("ulimit -v"));
}

// The first seed has two nodes that start again together; the memory of one is too much.
TEST(Limits, OfTheAddressSpaceAreWhatASweepTells) {
  const Outcome outcome =
      RunProgram({"sim", "--seeds", "6", "--keep-going"}, {.most_address_space_bytes = uint64_t{1465} << 20});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("ulimit -v"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("have not attached")));
}

TEST(Limits, OfTheAddressSpaceNameTheFlagOfTheNodesMemory) {
  const Outcome outcome =
      RunProgram({"tpcc", "prepare", "--memory-per-node", "2G"}, {.most_address_space_bytes = uint64_t{500} << 20});
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("ulimit -v"));
  EXPECT_THAT(outcome.err, HasSubstr("--memory-per-node"));
}

#endif

// A sweep and a crash test that would take hours.
TEST(CtrlC, EndsALongTestWithASummary) {
  const std::filesystem::path scratch = std::filesystem::path(::testing::TempDir()) / "gannet_ctrl_c";
  std::filesystem::remove_all(scratch);
  std::filesystem::create_directories(scratch);
  const std::vector<std::vector<std::string>> commands = {
      {"sim", "--seeds", "1000000", "--until", "1ms"},
      {"crashtest", "--cycles", "1000000", "--cycle-time", "10ms"},
  };
  for (const std::vector<std::string>& command : commands) {
    Program program(command, {.err_is_terminal = true, .temporary_directory = scratch});
    ASSERT_TRUE(program.WaitForStderr("2 of 1000000")) << command[0];
    program.Signal(SIGINT);
    const Outcome outcome = program.Wait();
    EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
    EXPECT_THAT(outcome.out + outcome.err, HasSubstr("stopped after ")) << command[0];
    EXPECT_THAT(outcome.out, HasSubstr(command[0] == "sim" ? " committed, " : "operations: ")) << command[0];
    EXPECT_TRUE(std::filesystem::is_empty(scratch)) << command[0];
  }
  std::filesystem::remove_all(scratch);
}

TEST(Version, IsTheProjects) {
  const Outcome outcome = RunProgram({"--version"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.out, "gannet " GANNET_VERSION "\n");
}

}  // namespace flags_test
}  // namespace gannet::cli
