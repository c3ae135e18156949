// Data directories from a user's view: made by `gannet tpcc`, inspected, damaged, copied.
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/program.h"

namespace gannet::cli {
namespace durable_test {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;
namespace fs = std::filesystem;

class DurableTest : public ::testing::Test {
 protected:
  DurableTest() : DurableTest(::testing::UnitTest::GetInstance()->current_test_info()->name()) {}
  explicit DurableTest(const std::string& name) : scratch_(fs::path(::testing::TempDir()) / ("gannet_" + name)) {}
  void SetUp() override {
    fs::remove_all(scratch_);
    fs::create_directories(scratch_);
  }
  void TearDown() override { fs::remove_all(scratch_); }

  std::string Path(const std::string& name) const { return (scratch_ / name).string(); }

  std::vector<std::string> Tpcc(const std::string& verb, std::vector<std::string> flags) const {
    flags.insert(flags.begin(),
                 {"tpcc", verb, "--dir", Path("data"), "--json", Path("report.json"), "--memory-per-node", "2G"});
    if (verb != "check" && !fs::exists(scratch_ / "data")) flags.emplace_back("--create");
    return flags;
  }
  Json Report() const { return Json::parse(std::ifstream(Path("report.json"))); }

  // A short run that leaves data.
  void Run(std::vector<std::string> flags = {}, const std::string& duration = "300ms") {
    flags.insert(flags.end(), {"--duration", duration, "--warmup", "0s"});
    const Outcome outcome = RunProgram(Tpcc("run", flags));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  }

  // The same without a run.
  void Prepare(const std::vector<std::string>& flags = {}) {
    const Outcome outcome = RunProgram(Tpcc("prepare", flags));
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
  }

  // The checkpoints, oldest first.
  std::vector<fs::path> Checkpoints() const {
    std::vector<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(scratch_ / "data")) {
      if (entry.path().filename().string().starts_with("checkpoint-")) paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    return paths;
  }
  // The largest file of the newest checkpoint.
  fs::path LargestOfCheckpoint() const {
    fs::path best;
    for (const auto& entry : fs::directory_iterator(Checkpoints().back())) {
      if (best.empty() || entry.file_size() > fs::file_size(best)) best = entry.path();
    }
    return best;
  }

  static void Damage(const fs::path& file, std::streamoff offset) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(offset);
    const int old = stream.get();
    stream.seekp(offset);
    stream.put(static_cast<char>(old ^ 0x40));
    ASSERT_TRUE(stream.good()) << file;
  }

  const fs::path scratch_;
};

// Tests of commands that only read what a short run has left: it is made once.
class LeftByARunTest : public DurableTest {
 protected:
  static constexpr const char* kName = "left_by_a_run";

  LeftByARunTest() : DurableTest(kName) {}
  void SetUp() override {
    if (std::exchange(is_made_, true)) return;
    DurableTest::SetUp();
    Run();
  }
  void TearDown() override {}
  static void TearDownTestSuite() {
    fs::remove_all(fs::path(::testing::TempDir()) / (std::string("gannet_") + kName));
    is_made_ = false;
  }

 private:
  static inline bool is_made_ = false;
};

TEST_F(DurableTest, ACrashTestOfTpccTellsNoNumberThatItDoesNotKnow) {
  const Outcome test = RunProgram(
      {"crashtest", "--workload", "tpcc", "--cycles", "1", "--cycle-time", "20ms", "--dir", Path("crashes")});
  ASSERT_EQ(test.exit_code, 0) << test.err << test.out;
  EXPECT_THAT(test.out, HasSubstr(" acknowledged, "));
  EXPECT_THAT(test.out, Not(HasSubstr(" begun")));
}

TEST_F(LeftByARunTest, ACheckChangesNothing) {
  const auto files = [this] {
    std::map<std::string, std::pair<uintmax_t, fs::file_time_type>> result;
    for (const auto& entry : fs::recursive_directory_iterator(scratch_ / "data")) {
      if (entry.path().filename() == "LOCK" || !entry.is_regular_file()) continue;
      result[entry.path().string()] = {entry.file_size(), entry.last_write_time()};
    }
    return result;
  };
  const auto before = files();
  const Outcome check = RunProgram(Tpcc("check", {}));
  EXPECT_EQ(check.exit_code, 0) << check.err << check.out;
  EXPECT_THAT(check.out, HasSubstr("was read, not changed"));
  EXPECT_EQ(files(), before);
}

TEST_F(LeftByARunTest, ACopyLiesOutsideOfWhatIsCopied) {
  for (const char* verb : {"backup", "restore"}) {
    for (const std::string& to : {Path("data/copy"), Path("data/../data/copy/")}) {
      const Outcome inside = RunProgram({verb, Path("data"), to});
      EXPECT_EQ(inside.exit_code, 2) << inside.err;
      EXPECT_THAT(inside.err, HasSubstr(to + " lies in " + Path("data")));
    }
    const Outcome nowhere = RunProgram({verb, Path("data"), "/no/such/copy"});
    EXPECT_EQ(nowhere.exit_code, 2) << nowhere.err;
    EXPECT_THAT(nowhere.err, HasSubstr("/no/such: cannot make a file there"));
  }
  EXPECT_FALSE(fs::exists(Path("data/copy")));
}

TEST_F(LeftByARunTest, ARecoveryWithTooLittleMemoryNamesTheFlag) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"recover", Path("data")}, {"export", Path("data"), "--table", "item"}}) {
    std::vector<std::string> arguments = command;
    arguments.insert(arguments.end(), {"--memory-per-node", "16M"});
    const Outcome outcome = RunProgram(arguments);
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("give nodes more memory (--memory-per-node)"));
  }
}

TEST_F(DurableTest, ARunIsKeptAndTheNextOneGoesOnWithIt) {
  // A disk of a busy machine may write nothing for 300 ms.
  Run({"--checkpoint-every", "100ms", "--in-flight", "8"}, "2s");
  const Json first = Report();
  EXPECT_EQ(first.at("configuration").at("durability"), "sync");
  const Json& durability = first.at("durability");
  EXPECT_EQ(durability.at("mode"), "sync");
  EXPECT_GT(durability.at("batches"), 0);
  EXPECT_GT(durability.at("log_bytes_per_new_order").get<double>(), 500);
  EXPECT_GT(durability.at("overhead").get<double>(), 1);
  EXPECT_GE(durability.at("write_amplification"), durability.at("overhead"));
  EXPECT_FALSE(durability.at("log").get<std::string>().empty());
  EXPECT_EQ(durability.at("recovery").size(), 0u);
  EXPECT_EQ(first.at("configuration").at("in_flight"), 8);

  Run();
  const Json second = Report();
  EXPECT_GT(second.at("configuration").at("in_flight"), 8);
  ASSERT_EQ(second.at("durability").at("recovery").size(), 1u);
  EXPECT_GT(second.at("durability").at("recovery")[0].at("records"), 500000);

  const Outcome check = RunProgram(Tpcc("check", {}));
  EXPECT_EQ(check.exit_code, 0) << check.err;
  EXPECT_THAT(check.out, HasSubstr("recovered from"));
  EXPECT_THAT(check.out, HasSubstr("  12  holds  "));
  const Json checked = Report();
  const auto orders = [](const Json& report) -> uint64_t {
    for (const Json& table : report.at("memory").at("tables")) {
      if (table.at("table") == "order") return table.at("rows");
    }
    return 0;
  };
  EXPECT_EQ(orders(checked), orders(second)) << "what the second run left";
  EXPECT_GT(orders(checked), orders(first));
}

TEST_F(DurableTest, ADirectoryIsCreatedOnlyWhenAskedForAndNeverWhereAPartIsMissing) {
  const std::vector<std::string> run = {"tpcc", "run",      "--dir", Path("data"), "--memory-per-node",
                                        "1G",   "--warmup", "0s",    "--duration", "100ms"};
  const Outcome missing = RunProgram(run);
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.err, HasSubstr("--create"));
  EXPECT_FALSE(fs::exists(Path("data")));
  for (const char* command : {"verify", "recover", "backup"}) {
    std::vector<std::string> arguments = {command, Path("data")};
    if (command == std::string("backup")) arguments.push_back(Path("copy"));
    EXPECT_EQ(RunProgram(arguments).exit_code, 1) << command;
    EXPECT_FALSE(fs::exists(Path("data"))) << command;
  }
  Prepare({"--nodes", "2"});
  fs::rename(Path("data/node-1"), Path("not mounted"));
  for (const char* create : {"--threads=2", "--create"}) {
    std::vector<std::string> again = run;
    again.emplace_back(create);
    const Outcome refused = RunProgram(again);
    EXPECT_EQ(refused.exit_code, 2) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("node-1/MANIFEST is missing"));
    EXPECT_FALSE(fs::exists(Path("data/node-1")));
  }
  fs::rename(Path("not mounted"), Path("data/node-1"));
  const Outcome whole = RunProgram(run);
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
}

TEST_F(LeftByARunTest, ACommandLineThatContradictsTheDirectoryIsRefused) {
  const Outcome warehouses = RunProgram(Tpcc("check", {"--warehouses", "2"}));
  EXPECT_EQ(warehouses.exit_code, 2);
  EXPECT_THAT(warehouses.err, HasSubstr("--warehouses 2"));
  const Outcome nodes = RunProgram(Tpcc("check", {"--nodes", "2"}));
  EXPECT_EQ(nodes.exit_code, 2);
  EXPECT_THAT(nodes.err, HasSubstr("--nodes 2"));
}

TEST_F(DurableTest, TheOrderedIndexIsThatOfTheFirstRun) {
  Run({"--ordered-index", "rolex"});
  EXPECT_EQ(Report().at("configuration").at("ordered_index"), "rolex");
  Run();
  EXPECT_EQ(Report().at("configuration").at("ordered_index"), "rolex");
  const Outcome check = RunProgram(Tpcc("check", {}));
  EXPECT_EQ(check.exit_code, 0) << check.err;
  EXPECT_THAT(check.out, HasSubstr("ordered index rolex"));
  EXPECT_THAT(check.out, HasSubstr("  12  holds  "));
  const Outcome other = RunProgram(Tpcc("check", {"--ordered-index", "blink"}));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("--ordered-index blink: " + Path("data") + " has rolex"));
  const Outcome verify = RunProgram({"verify", Path("data")});
  EXPECT_EQ(verify.exit_code, 0) << verify.err << verify.out;
}

TEST_F(DurableTest, SoAreTheRightsOfItsClients) {
  Run({"--ordered-index", "blink", "--index-rights", "owner"});
  EXPECT_EQ(Report().at("configuration").at("index_rights"), "owner");
  const Outcome check = RunProgram(Tpcc("check", {}));
  EXPECT_EQ(check.exit_code, 0) << check.err;
  EXPECT_THAT(check.out, HasSubstr("ordered index blink, changed by owner"));
  EXPECT_THAT(check.out, HasSubstr("  12  holds  "));
  const Outcome other = RunProgram(Tpcc("check", {"--index-rights", "clients"}));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("--index-rights clients: " + Path("data") + " has owner"));
}

TEST_F(DurableTest, WhatOtherModesKeep) {
  for (const char* mode : {"async", "none"}) {
    Run({"--durability", mode});
    const Outcome check = RunProgram(Tpcc("check", {}));
    EXPECT_EQ(check.exit_code, 0) << mode << check.err;
  }
}

TEST_F(DurableTest, TwoNodesKeepTheirParts) {
  Run({"--nodes", "2"});
  EXPECT_TRUE(fs::exists(Path("data/node-1/MANIFEST")));
  const Outcome check = RunProgram(Tpcc("check", {}));
  EXPECT_EQ(check.exit_code, 0) << check.err;
  EXPECT_EQ(Report().at("configuration").at("nodes"), 2);
  const Outcome verify = RunProgram({"verify", Path("data")});
  EXPECT_EQ(verify.exit_code, 0) << verify.err << verify.out;
  const Outcome recover = RunProgram({"recover", Path("data"), "--memory-per-node", "2G"});
  EXPECT_EQ(recover.exit_code, 0) << recover.err;
  EXPECT_THAT(recover.out, HasSubstr("node-1"));
}

TEST_F(LeftByARunTest, CommandsLookIntoADirectoryAndChangeNothing) {
  const auto contents = [this] {
    std::ostringstream all;
    std::vector<fs::path> paths;
    for (const auto& entry : fs::recursive_directory_iterator(scratch_ / "data")) paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    for (const fs::path& path : paths) {
      all << path << (fs::is_regular_file(path) ? fs::file_size(path) : 0) << ' '
          << fs::last_write_time(path).time_since_epoch().count() << '\n';
    }
    return all.str();
  };
  const std::string before = contents();
  const Outcome recover = RunProgram({"recover", Path("data"), "--memory-per-node", "2G"});
  EXPECT_EQ(recover.exit_code, 0) << recover.err;
  EXPECT_THAT(recover.out, HasSubstr("GB/s"));
  EXPECT_THAT(recover.out, HasSubstr("last durable epoch"));
  const Outcome verify = RunProgram({"verify", Path("data")});
  EXPECT_EQ(verify.exit_code, 0) << verify.out;
  EXPECT_THAT(verify.out, HasSubstr("all is well"));
  EXPECT_THAT(verify.out, Not(HasSubstr("belongs to nothing"))) << "nothing has crashed";
  const Json recovered = Json::parse(RunProgram({"recover", Path("data"), "--memory-per-node", "2G", "--json"}).out);
  EXPECT_GT(recovered.at("nodes").at(0).at("records"), 0);
  EXPECT_TRUE(recovered.at("nodes").at(0).at("left_out").empty());
  const Json verified = Json::parse(RunProgram({"verify", Path("data"), "--json"}).out);
  EXPECT_TRUE(verified.at("problems").empty());
  EXPECT_EQ(verified.at("nodes").at(0).at("recovered_epoch"), recovered.at("nodes").at(0).at("recovered_epoch"));
  const Outcome dump = RunProgram({"log", "dump", Path("data"), "--json", "--table", "history"});
  EXPECT_EQ(dump.exit_code, 0) << dump.err;
  std::istringstream lines(dump.out);
  int transactions = 0;
  for (std::string line; std::getline(lines, line); ++transactions) {
    const Json transaction = Json::parse(line);
    EXPECT_GT(transaction.at("epoch"), 0);
    ASSERT_EQ(transaction.at("changes").size(), 1u) << "a payment has one line of history";
    EXPECT_EQ(transaction.at("changes")[0].at("table"), "history");
    EXPECT_EQ(transaction.at("changes")[0].at("payload_hex").get<std::string>().size(), 2 * 39u);
  }
  EXPECT_GT(transactions, 0);
  EXPECT_THAT(RunProgram({"log", "dump", Path("data"), "--from-epoch", "2"}).out, HasSubstr("put    order_line "));
  EXPECT_EQ(RunProgram({"log", "dump", Path("data"), "--table", "orders"}).exit_code, 2);
  EXPECT_EQ(contents(), before);
}

TEST_F(DurableTest, VerifyNamesTheDamagedPlaceAndSalvageListsIt) {
  Run();
  const fs::path file = LargestOfCheckpoint();
  ASSERT_FALSE(file.empty());
  Damage(file, static_cast<std::streamoff>(4096 + 512));
  const Outcome json = RunProgram({"verify", Path("data"), "--json"});
  EXPECT_EQ(json.exit_code, 1);
  EXPECT_EQ(Json::parse(json.out).at("problems").at(0).at("file"), file.string());
  const Outcome verify = RunProgram({"verify", Path("data")});
  EXPECT_EQ(verify.exit_code, 1);
  EXPECT_THAT(verify.out, HasSubstr("WRONG: " + file.string() + " at offset 4096"));
  const Outcome recover = RunProgram({"recover", Path("data"), "--memory-per-node", "2G"});
  EXPECT_EQ(recover.exit_code, 1);
  EXPECT_THAT(recover.err, HasSubstr(file.filename().string()));
  const Outcome salvage = RunProgram({"recover", Path("data"), "--memory-per-node", "2G", "--salvage"});
  EXPECT_EQ(salvage.exit_code, 1);
  EXPECT_THAT(salvage.out, HasSubstr("DAMAGED, left out: "));
  const Outcome backup = RunProgram({"backup", Path("data"), Path("backup")});
  EXPECT_EQ(backup.exit_code, 1);
  EXPECT_FALSE(fs::exists(Path("backup"))) << "what is not sound is not left";
  EXPECT_THAT(backup.err, HasSubstr("gannet backup --salvage"));
  const Outcome saved = RunProgram({"backup", "--salvage", Path("data"), Path("backup")});
  EXPECT_EQ(saved.exit_code, 1);
  EXPECT_THAT(saved.err, HasSubstr("DAMAGED, left out: "));
  const Outcome again = RunProgram({"recover", Path("backup"), "--memory-per-node", "2G"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
}

TEST_F(DurableTest, AnOlderCheckpointTakesThePlaceOfADamagedOne) {
  // No older checkpoint takes the place of the load's, so one is taken during the run. On a busy machine that takes
  // time.
  for (int milliseconds = 900; milliseconds == 900 || Report().at("durability").at("checkpoints") == 0;
       milliseconds *= 2) {
    Run({"--checkpoint-every", "50ms", "--in-flight", "8"}, std::to_string(milliseconds) + "ms");
  }
  ASSERT_GE(Checkpoints().size(), 2u);
  const fs::path file = LargestOfCheckpoint();
  Damage(file, static_cast<std::streamoff>(4096 + 512));
  const Outcome verify = RunProgram({"verify", Path("data")});
  EXPECT_EQ(verify.exit_code, 1);
  EXPECT_THAT(verify.out, HasSubstr("WRONG: " + file.string() + " at offset 4096"));
  const Outcome recover = RunProgram({"recover", Path("data"), "--memory-per-node", "2G"});
  EXPECT_EQ(recover.exit_code, 0) << recover.err;
  EXPECT_THAT(recover.out, HasSubstr(file.string() + " is damaged at offset 4096"));
  EXPECT_THAT(recover.out, HasSubstr("nothing is lost"));
  const Outcome check = RunProgram(Tpcc("check", {}));
  EXPECT_EQ(check.exit_code, 0) << check.err << check.out;
  EXPECT_THAT(check.out, HasSubstr("nothing is lost"));
  EXPECT_EQ(Report().at("durability").at("recovery")[0].at("replaced").size(), 1u);
}

TEST_F(DurableTest, ABackupOfADirectoryInUseCanBeRestored) {
  Program program(Tpcc("run", {"--duration", "1h", "--warmup", "0s", "--interval", "20ms", "--checkpoint-every", "50ms",
                               "--in-flight", "8", "--log-preallocate", "128M"}),
                  {.err_is_terminal = true});
  ASSERT_TRUE(program.WaitForStderr("transactions/s"));
  const Outcome backup = RunProgram({"backup", Path("data"), Path("backup"), "--json"});
  EXPECT_EQ(backup.exit_code, 0) << backup.err << backup.out;
  EXPECT_TRUE(Json::parse(backup.out).at("problems").empty());
  program.Signal(SIGINT);
  const Outcome run = program.Wait();
  EXPECT_EQ(run.exit_code, 130) << run.err;

  const Outcome not_empty = RunProgram({"restore", Path("backup"), Path("data")});
  EXPECT_EQ(not_empty.exit_code, 2);
  EXPECT_THAT(not_empty.err, HasSubstr("not empty"));
  fs::remove_all(Path("data"));
  const Outcome restore = RunProgram({"restore", Path("backup"), Path("data")});
  ASSERT_EQ(restore.exit_code, 0) << restore.err << restore.out;
  const Outcome check = RunProgram(Tpcc("check", {}));
  EXPECT_EQ(check.exit_code, 0) << check.err << check.out;

  // The copy has an end of its own.
  fs::path last;
  for (const auto& entry : fs::directory_iterator(Path("backup"))) {
    if (entry.path().filename().string().starts_with("log-")) last = std::max(last, entry.path());
  }
  ASSERT_FALSE(last.empty());
  fs::resize_file(last, 0);
  const Outcome cut = RunProgram({"verify", Path("backup")});
  EXPECT_EQ(cut.exit_code, 1);
  EXPECT_THAT(cut.out, HasSubstr("WRONG: " + last.string()));
  fs::remove(last);
  const Outcome removed = RunProgram({"verify", Path("backup")});
  EXPECT_EQ(removed.exit_code, 1);
  EXPECT_THAT(removed.out, HasSubstr("WRONG: " + last.string()));
  const Outcome refused = RunProgram({"recover", Path("backup"), "--memory-per-node", "2G"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr(last.string()));
}

TEST_F(DurableTest, ExportWritesTheRowsOfATable) {
  Prepare({"--nodes", "2", "--warehouses", "2"});
  const Outcome csv =
      RunProgram({"export", Path("data"), "--table", "district", "--csv", "--out", "-", "--memory-per-node", "2G"});
  EXPECT_EQ(csv.exit_code, 0) << csv.err;
  EXPECT_EQ(std::ranges::count(csv.out, '\n'), 1 + 20) << "a header and the rows of both nodes: " << csv.out;
  EXPECT_TRUE(csv.out.starts_with("key,payload\n"));
  EXPECT_FALSE(fs::exists("-"));
  EXPECT_THAT(csv.err, HasSubstr("20 rows of table district"));
  const Outcome json = RunProgram({"export", Path("data"), "--table", "customer_by_name", "--json", "--keys", "hex",
                                   "--payloads", "hex", "--out", Path("rows.json"), "--memory-per-node", "2G"});
  EXPECT_EQ(json.exit_code, 0) << json.err;
  EXPECT_EQ(json.out, "");
  std::ifstream lines(Path("rows.json"));
  std::string line;
  std::string first;
  int rows = 0;
  for (; std::getline(lines, line); ++rows) {
    const Json row = Json::parse(line);
    EXPECT_TRUE(row.at("key_hex").is_string());
    EXPECT_EQ(row.at("payload_hex"), "") << "it has no payload";
    if (rows == 0) first = row.at("key_hex");
  }
  EXPECT_EQ(rows, 2 * 10 * 3000);
  EXPECT_NE(first, "");
  std::ofstream(Path("kept.csv")) << "precious";
  EXPECT_EQ(RunProgram({"export", Path("data"), "--table", "orders", "--out", Path("kept.csv")}).exit_code, 2);
  EXPECT_EQ(fs::file_size(Path("kept.csv")), 8u) << "an error leaves what was there";
  const Outcome inside =
      RunProgram({"export", Path("data"), "--table", "district", "--out", Path("data/node-0/MANIFEST")});
  EXPECT_EQ(inside.exit_code, 2);
  EXPECT_THAT(inside.err, HasSubstr("holds a database"));
  const Outcome json_inside =
      RunProgram({"sim", "--seed", "1", "--until", "1ms", "--json", Path("data/node-0/LOG-END")});
  EXPECT_EQ(json_inside.exit_code, 2);
  EXPECT_EQ(RunProgram({"verify", Path("data")}).exit_code, 0);
  const Outcome unknown = RunProgram({"export", Path("data"), "--table", "orders"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("--table orders: must be one of"));
  const Outcome full =
      RunProgram({"export", Path("data"), "--table", "district", "--out", "/dev/full", "--memory-per-node", "2G"});
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_THAT(full.err, HasSubstr("No space left on device"));
}

TEST_F(DurableTest, ADirectoryThatIsNoneIsAnError) {
  for (const char* command : {"verify", "recover"}) {
    const Outcome outcome = RunProgram({command, Path("nothing")});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.err, HasSubstr("holds no database; check the path\n"));
  }
}

}  // namespace durable_test
}  // namespace gannet::cli
