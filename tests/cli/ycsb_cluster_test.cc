// `gannet ycsb --cluster` against servers that are processes over one memory file.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/cluster_fixture.h"
#include "tests/cli/program.h"

namespace gannet::cli {
namespace ycsb_cluster_test {

using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr int kYcsbServers = 2;
constexpr int kKeys = 4000;
const std::vector<std::string> kShort = {"--duration", "100ms", "--warmup", "10ms", "--interval", "20ms"};

class YcsbClusterTest : public ClusterFixture {
 protected:
  YcsbClusterTest() { WriteFile("cluster.toml", ""); }

  // `more` goes into [ycsb].
  void WriteFile(const std::string& name, const std::string& more, const std::string& memory = "64M",
                 int keys = kKeys) const {
    std::ofstream file(Path(name));
    file << "fabric = \"shm\"\nclient_slots = 2\n[shm]\nmemory_file = \"memory\"\n[ycsb]\nkeys = " << keys << "\n"
         << more << "\n";
    for (int id = 0; id < kYcsbServers; ++id) file << "[[server]]\nid = " << id << "\nmemory = \"" << memory << "\"\n";
  }
  void StartServers(const std::string& file = "cluster.toml") {
    for (int id = 0; id < kYcsbServers; ++id) StartServer(id, file);
    WaitUntilServing();
  }
  void StopAll() {
    StopServers();
    EXPECT_FALSE(std::filesystem::exists(Path("memory")));
  }
  Json ReportOf(const std::string& json) const { return Json::parse(std::ifstream(Path(json))); }
  Json Run(const std::vector<std::string>& flags) {
    const Outcome outcome = RunProgram(Ycsb(Joined(Joined(kShort, flags), {"--json", Path("report.json")})));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    text_ = outcome.out;
    return outcome.exit_code == 0 ? ReportOf("report.json") : Json();
  }
  // Starts a client that runs until it is stopped, and waits until it has measured something.
  std::unique_ptr<Program> StartYcsb(const std::vector<std::string>& flags) const {
    auto client =
        std::make_unique<Program>(Ycsb(Joined({"--duration", "10m", "--warmup", "0s", "--interval", "20ms"}, flags)),
                                  Surroundings{.err_is_terminal = true});
    EXPECT_TRUE(client->WaitForStderr("operations/s")) << client->Wait().err;
    return client;
  }

  std::string text_;
};

double VerbsOf(const Json& report, const std::string& kind, const std::string& verb) {
  return report.at("operations").at(kind).at("verbs").at(verb);
}
uint64_t OperationsOf(const Json& report, const std::string& kind) {
  return report.at("operations").at(kind).at("operations");
}

TEST_F(YcsbClusterTest, EveryWorkloadReportsAsInOneProcess) {
  setenv("COLUMNS", "1000", 1);  // so that no line of the report is broken
  StartServers();
  Json report = Run({"--workload", "c", "--clients", "1x2", "--duration", "1s"});  // long enough for a calibration
  EXPECT_GT(OperationsOf(report, "read"), 0u);
  EXPECT_GE(VerbsOf(report, "read", "read"), 1) << "one-sided";
  EXPECT_LT(VerbsOf(report, "read", "call"), 0.5);
  EXPECT_EQ(report.at("index").at("keys"), kKeys);
  EXPECT_GT(report.at("index").at("registered_bytes"), 0);
  EXPECT_GT(report.at("index").at("store_bytes"), kKeys * 64);
  EXPECT_GT(report.at("model").at("sub_models"), 0);
  EXPECT_GT(report.at("clients").at("one_sided"), 0);
  EXPECT_GT(report.at("calibration").at("dependent_read_ns_after_run").get<double>(), 0);
  const Json& configuration = report.at("configuration");
  EXPECT_EQ(configuration.at("fabric"), "shm");
  EXPECT_EQ(configuration.at("servers"), kYcsbServers);
  EXPECT_EQ(configuration.at("machines"), 1);
  EXPECT_EQ(configuration.at("keys"), kKeys);
  EXPECT_EQ(configuration.at("slot"), 0);
  EXPECT_EQ(configuration.at("cluster"), Path("cluster.toml"));
  EXPECT_THAT(text_, HasSubstr(absl::StrCat("on 2 servers of ", Path("cluster.toml"),
                                            " (shm), as its client in slot 0, seed 1\n")));

  report = Run({"--workload", "c", "--path", "rpc", "--coroutines", "4"});
  EXPECT_EQ(VerbsOf(report, "read", "call"), 1);
  EXPECT_EQ(VerbsOf(report, "read", "read"), 0);

  uint64_t keys = kKeys;
  for (const char* workload : {"a", "b", "d", "e", "f"}) {
    report = Run({"--workload", workload});
    EXPECT_GT(report.at("all").at("operations"), 0) << workload;
    EXPECT_GE(report.at("index").at("keys").get<uint64_t>(), keys + OperationsOf(report, "insert")) << workload;
    keys = report.at("index").at("keys");
  }
  EXPECT_GT(OperationsOf(report, "read_modify_write"), 0u);
  EXPECT_EQ(VerbsOf(report, "read_modify_write", "cas"), 0) << "the file says that updates are calls";
  EXPECT_GT(keys, uint64_t{kKeys}) << "d and e insert";
  // Clients that run one after the other would insert the same keys if the server did not count them.
  const Json again = Run({"--mix", "0,0,100,0,0"});
  EXPECT_GT(OperationsOf(again, "insert"), 0u);
  StopAll();
}

TEST_F(YcsbClusterTest, TheFileSaysWhichIndexAndHowUpdatesAreDone) {
  WriteFile("cluster.toml", "index = \"hash\"\nupdates = \"one-sided\"\nvalue_bytes = 100");
  StartServers();
  const Json report = Run({"--workload", "a"});
  EXPECT_EQ(report.at("configuration").at("index"), "hash");
  EXPECT_EQ(report.at("configuration").at("updates"), "one-sided");
  EXPECT_GE(VerbsOf(report, "update", "cas"), 1);
  // A lookup that meets a bucket in change again and again asks its owner.
  EXPECT_LT(VerbsOf(report, "update", "call"), 0.01);
  EXPECT_FALSE(report.contains("model"));
  StopAll();
}

TEST_F(YcsbClusterTest, TwoClientsInsertDifferentKeys) {
  WriteFile("cluster.toml", "", "4G");  // room for minutes: both insert until they are interrupted
  StartServers();
  const std::vector<std::string> flags = {"--workload", "load", "--clients", "1x2"};
  auto first = StartYcsb(Joined(flags, {"--json", Path("first.json")}));
  auto second = StartYcsb(Joined(flags, {"--json", Path("second.json"), "--inserts", "append"}));
  const Outcome refused = RunProgram(Ycsb(kShort));
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("all 2 client slots of"));
  for (Program* client : {first.get(), second.get()}) {
    client->Signal(SIGINT);
    const Outcome outcome = client->Wait();
    EXPECT_EQ(outcome.exit_code, 128 + SIGINT) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("INTERRUPTED"));
  }
  const Json one = ReportOf("first.json");
  const Json other = ReportOf("second.json");
  EXPECT_EQ(one.at("interrupted"), true);
  EXPECT_EQ(other.at("configuration").at("slot"), 1);
  const Json after = Run({"--workload", "c"});
  EXPECT_GE(after.at("index").at("keys").get<uint64_t>(),
            kKeys + OperationsOf(one, "insert") + OperationsOf(other, "insert"));
  StopAll();
}

TEST_F(YcsbClusterTest, AKilledClientLeavesItsSlotAndAKilledServerIsNamed) {
  StartServers();
  auto victim = StartYcsb({"--workload", "a"});
  victim->Signal(SIGKILL);
  EXPECT_EQ(victim->Wait().exit_code, 128 + SIGKILL);
  auto client = StartYcsb({"--workload", "a"});
  KillServerUnder(client.get());
  ExpectServerStaysOut();
  StopAll();
}

TEST_F(YcsbClusterTest, AServerThatIsAskedToLeaveIsNamedToo) {
  StartServers();
  auto client = StartYcsb({"--workload", "c"});
  StopServers();
  const Outcome outcome = client->Wait();
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("is gone, and its data with it"));
}

TEST_F(YcsbClusterTest, ServersThatAreNotThereOrHoldSomethingElseAreTold) {
  const Outcome alone = RunProgram(Ycsb({"--wait", "50ms"}));
  EXPECT_EQ(alone.exit_code, 1);
  EXPECT_THAT(alone.err, HasSubstr("waited 50ms for server 0 (node 0), server 1 (node 1) to come"));
  EXPECT_THAT(alone.err, HasSubstr("--wait"));
  StartServers();
  for (const char* more : {"index = \"hash\"", "value_bytes = 16"}) {
    WriteFile("other.toml", more);
    const Outcome outcome = RunProgram(Ycsb(kShort, "other.toml"));
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.err, HasSubstr("give all processes of a cluster the same"));
  }
  StopAll();
}

TEST_F(YcsbClusterTest, AServerWithoutRoomSaysWhatToChange) {
  WriteFile("cluster.toml", "", "16M", 2'000'000);
  StartServer(0);
  StartServer(1);
  const Outcome outcome = servers_[0]->Wait();
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("no room for"));
  EXPECT_THAT(outcome.err, HasSubstr("more memory, [ycsb] fewer keys, or another read_only_percent"));
  servers_.clear();
}

TEST_F(YcsbClusterTest, WrongFlagsAreToldBeforeAnythingIsDone) {
  const auto expect = [](const std::vector<std::string>& arguments, const std::string& says) {
    const Outcome outcome = RunProgram(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(says));
  };
  expect(Ycsb({"--keys", "4K"}), "--keys: is for servers in this process");
  expect(Ycsb({"--updates", "one-sided"}), "--updates: is for servers in this process");
  expect(Ycsb({"--fabric", "sim"}), "--fabric: is for servers in this process");
  const std::vector<std::vector<std::string>> of_one_process = {
      {"--partitioned"},      {"--colocated"},
      {"--inline"},           {"--index-options", "epsilon=8"},
      {"--nic", "cx5-100g"},  {"--disk", "nvme"},
      {"--move-after", "1s"}, {"--durability", "sync"},
      {"--trainers", "2"},    {"--kept-leaves", "write-back"}};
  for (const std::vector<std::string>& flag : of_one_process) {
    expect(Ycsb(flag), flag[0] + ": needs servers in this process; leave " + flag[0] + " out, or --cluster");
  }
  expect(Ycsb({"--clients", "2x1"}), "--clients 2x1: this process is one client machine");
  expect(Ycsb({}, "absent.toml"), "cannot read the cluster file");
  expect({"ycsb", "--wait", "1s"}, "--wait: is for servers that load; give --cluster");
  expect({"ycsb", "--fabric", "verbs"}, "must be shm or sim");
  expect(Tpcc("run"), "its servers hold the keys of YCSB ([ycsb]), not TPC-C; run gannet ycsb --cluster");
  WriteFile("cluster.toml", "index = \"hash\"");
  expect(Ycsb({"--workload", "e"}), "--index hash: has no order");
  std::ofstream(Path("tpcc.toml")) << "fabric = \"shm\"\n[shm]\nmemory_file = \"m\"\n[tpcc]\nwarehouses = 1\n"
                                      "[[server]]\nid = 0\nmemory = \"128M\"\n";
  expect(Ycsb({}, "tpcc.toml"), "its servers hold TPC-C ([tpcc]), not the keys of YCSB; run gannet tpcc run --cluster");
}

}  // namespace ycsb_cluster_test
}  // namespace gannet::cli
