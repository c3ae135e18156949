// Long-lived processes with one memory file, started, stopped and killed as by a user.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/cluster_fixture.h"
#include "tests/cli/program.h"
#include "tests/http_get.h"

namespace gannet::cli {
namespace cluster_test {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr int kServers = 2;

class ClusterTest : public ClusterFixture {
 protected:
  ClusterTest() { WriteFile("cluster.toml", "seed = 1"); }

  // Writes a cluster file with a small population. `more` goes into [tpcc].
  void WriteFile(const std::string& name, const std::string& more) const {
    std::ofstream file(Path(name));
    file << "fabric = \"shm\"\nclient_slots = 2\n[shm]\nmemory_file = \"memory\"\n"
         << "[tpcc]\nwarehouses = 3\nitems = 500\ncustomers_per_district = 60\n"
         << more << "\n";
    for (int id = 0; id < kServers; ++id) file << "[[server]]\nid = " << id << "\nmemory = \"128M\"\n";
  }

  void StartServers() {
    for (int id = 0; id < kServers; ++id) StartServer(id);
    WaitUntilServing();
  }
  Outcome StopServer(int id) {
    servers_[id]->Signal(SIGTERM);
    Outcome outcome = servers_[id]->Wait();
    servers_.erase(id);
    return outcome;
  }
  void StopAll() {
    StopServers();
    EXPECT_FALSE(fs::exists(Path("memory")));
  }
  std::unique_ptr<Program> StartClientWith(const std::string& json = "client.json") const {
    return StartClient({"--json", Path(json)});
  }
  void ExpectConsistent() const {
    const Outcome check = RunProgram(Tpcc("check"));
    EXPECT_EQ(check.exit_code, 0) << check.err << check.out;
    EXPECT_THAT(check.out, HasSubstr("12  holds"));
  }
};

TEST_F(ClusterTest, ItDoesNotMatterWhoComesFirst) {
  Random random(5);
  for (int round = 0; round < 3; ++round) {
    std::vector<int> order = {0, 1, 2};  // 2: the client
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
    std::unique_ptr<Program> client;
    for (const int id : order) {
      if (id < kServers) {
        StartServer(id);
      } else {
        client = std::make_unique<Program>(Tpcc("run", {"--duration", "300ms", "--warmup", "0s", "--threads", "2"}));
      }
    }
    const Outcome outcome = client->Wait();
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err << outcome.out;
    EXPECT_THAT(outcome.out, HasSubstr("3 warehouses on 2 servers of"));
    EXPECT_THAT(outcome.out, HasSubstr("12  holds"));
    for (const auto& [id, server] : servers_) EXPECT_TRUE(server->WaitForStdout("ready: node ")) << id;
    StopAll();
  }
}

TEST_F(ClusterTest, AServerThatIsAskedToLeaveWhileItWaitsLeaves) {
  StartServer(1);
  ASSERT_TRUE(servers_[1]->WaitForStderr("waiting for server 0 (node 0) to come"));
  StopAll();
}

TEST_F(ClusterTest, AKilledClientDisturbsNobodyAndItsSlotIsFree) {
  StartServers();
  auto victim = StartClientWith("victim.json");
  auto survivor = StartClientWith("survivor.json");
  const Outcome refused = RunProgram(Tpcc("run", {"--duration", "1s"}));
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("all 2 client slots"));
  victim->Signal(SIGKILL);
  EXPECT_EQ(victim->Wait().exit_code, 128 + SIGKILL);
  auto next = StartClientWith("next.json");
  for (Program* client : {next.get(), survivor.get()}) {
    client->Signal(SIGINT);
    const Outcome outcome = client->Wait();
    EXPECT_EQ(outcome.exit_code, 128 + SIGINT) << outcome.err << outcome.out;
  }
  ExpectConsistent();
  StopAll();
}

TEST_F(ClusterTest, AKilledServerIsUnavailableAndCannotJustComeBack) {
  StartServers();
  auto client = StartClientWith();
  KillServerUnder(client.get());
  ExpectServerStaysOut();
  StopAll();
  StartServers();  // all of them again
  ExpectConsistent();
  StopAll();
}

TEST_F(ClusterTest, WhoHasAnotherClusterFileIsRefused) {
  StartServers();
  WriteFile("other.toml", "seed = 2");
  for (const auto& arguments :
       {std::vector<std::string>{"tpcc", "run", "--cluster", Path("other.toml")}, Serve(1, "other.toml")}) {
    const Outcome outcome = RunProgram(arguments);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.err, HasSubstr("a configuration with hash"));
    EXPECT_THAT(outcome.err, HasSubstr("give all processes of a cluster the same"));
  }
  const Outcome twice = RunProgram(Serve(1));
  EXPECT_EQ(twice.exit_code, 1);
  EXPECT_THAT(twice.err, HasSubstr("server 1 (node 1) of this cluster runs already"));
  StopAll();
}

TEST_F(ClusterTest, MetricsAreAnsweredIfAskedFor) {
  StartServer(0);
  std::vector<std::string> arguments = Serve(1);
  arguments.insert(arguments.end(), {"--metrics", "0"});
  servers_[1] = std::make_unique<Program>(arguments);
  ASSERT_TRUE(servers_[1]->WaitForStdout("ready: "));
  const std::string begin = "metrics at port ";
  ASSERT_TRUE(servers_[1]->WaitForStderr("/metrics"));
  const std::string& said = servers_[1]->heard_on_stderr();
  const int port = std::stoi(said.substr(said.find(begin) + begin.size()));
  const Outcome run = RunProgram(Tpcc("run", {"--duration", "200ms", "--warmup", "0s"}));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const std::string metrics = HttpGet(port, "/metrics");
  EXPECT_THAT(metrics, HasSubstr("gannet_server_alive{server=\"node 0\"} 1"));
  EXPECT_THAT(metrics, HasSubstr("gannet_clients 0"));
  EXPECT_THAT(metrics, HasSubstr("gannet_registered_memory_bytes{kind=\"capacity\"} 134"));
  EXPECT_THAT(metrics, ContainsRegex("gannet_calls_total\\{layer=\"cluster\",method=\"hello\"\\} [1-9]"));
  EXPECT_THAT(metrics, ContainsRegex("gannet_calls_total\\{layer=\"txn\",method=\"txn_prepare\"\\} [1-9]"));
  // The node at which a transaction runs counts it: here the client.
  EXPECT_THAT(metrics, HasSubstr("gannet_commits_total{kind=\"writing\"} 0"));
  EXPECT_THAT(metrics, HasSubstr("gannet_rows_written_total{operation=\"insert\"} 0"));
  EXPECT_THAT(metrics, HasSubstr("gannet_commit_seconds_bucket{le=\"0.001048576\"}"));
  EXPECT_THAT(metrics, HasSubstr("gannet_commit_seconds_bucket{le=\"+Inf\"}"));
  EXPECT_THAT(metrics, ContainsRegex("gannet_call_threads_busy_ratio [01]"));
  StopAll();
}

// If it joined and then failed, its memory and with it the cluster would be lost.
TEST_F(ClusterTest, AServerWhoseMetricsPortIsTakenDoesNotJoin) {
  const int taken = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(taken, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(taken, 1), 0);
  socklen_t size = sizeof address;
  ASSERT_EQ(getsockname(taken, reinterpret_cast<sockaddr*>(&address), &size), 0);
  StartServer(0);
  std::vector<std::string> arguments = Serve(1);
  arguments.insert(arguments.end(), {"--metrics", absl::StrCat(ntohs(address.sin_port))});
  const Outcome refused = RunProgram(arguments);
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr("cannot listen there"));
  close(taken);
  StartServer(1);
  WaitUntilServing();
  ExpectConsistent();
  StopAll();
}

TEST_F(ClusterTest, WrongFlagsAreToldBeforeAnythingIsDone) {
  const auto expect = [](const std::vector<std::string>& arguments, const std::string& says) {
    const Outcome outcome = RunProgram(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(says));
  };
  expect(Serve(2), "there is no server '2'");
  expect(Serve(0, "absent.toml"), "cannot read the cluster file");
  expect(Tpcc("run", {"--warehouses", "3"}), "--warehouses: is for data that this process has");
  expect(Tpcc("run", {"--dir", "x"}), "--dir: is for data that this process has");
  expect(Tpcc("run", {"--threads", "200"}), "a client has at most 127");
  expect({"serve", "--node", "0"}, "--cluster");
}

}  // namespace cluster_test
}  // namespace gannet::cli
