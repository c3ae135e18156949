// Long-lived processes over real verbs, started, stopped and killed as by a user. Requires an RDMA device:
// tests/softroce runs this test in a machine with one. Everything is small, because that is an emulated machine.
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rdma/verbs/devices.h"
#include "tests/cli/cluster_fixture.h"
#include "tests/cli/program.h"

namespace gannet::cli {
namespace cluster_verbs_test {

using ::testing::HasSubstr;

constexpr int kServers = 3;
const std::vector<std::string> kMetrics = {"--metrics", "0"};
constexpr const char* kNoSlot = "all 1 client slots";

// An address of an RDMA device.
std::string AddressOfDevice(bool ipv6) {
  const auto devices = rdma::verbs::ListDevices();
  for (const rdma::verbs::DeviceReport& device : devices.value()) {
    for (const std::string& address : device.addresses) {
      if (absl::StrContains(address, ":") == ipv6) return ipv6 ? absl::StrCat("[", address, "]") : address;
    }
  }
  return "";
}

class ClusterVerbsTest : public ClusterFixture {
 protected:
  ClusterVerbsTest() { WriteSecret("secret", "what the nodes of a test know"); }

  void WriteSecret(const std::string& name, const std::string& secret) const {
    std::ofstream(Path(name)) << secret << "\n";
    ASSERT_EQ(chmod(Path(name).c_str(), 0600), 0);
  }
  // The machine may stand still for seconds, so time limits are long.
  void WriteCluster(const std::string& name, const std::string& address, const std::string& verbs, int seed = 1) const {
    std::ofstream file(Path(name));
    file << "fabric = \"verbs\"\nclient_slots = 1\n[verbs]\nclient_memory = \"64M\"\nsilence_limit = \"60s\"\n"
         << verbs << "\n[tpcc]\nwarehouses = " << kServers
         << "\nitems = 200\ncustomers_per_district = 30\nseed = " << seed << "\n";
    for (int id = 0; id < kServers; ++id) {
      file << "[[server]]\nid = " << id << "\naddress = \"" << address << ":" << 7471 + id << "\"\nmemory = \"64M\"\n";
    }
  }

  static void ExpectRefused(const std::vector<std::string>& arguments, const std::string& reason) {
    const Outcome outcome = RunProgram(arguments);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.err, HasSubstr(reason));
    EXPECT_FALSE(absl::StrContains(outcome.err + outcome.out, "of a test know"));  // it does not print the secret
  }
};

TEST_F(ClusterVerbsTest, TheDeviceMadeOfSoftwareIsNamed) {
  const Outcome outcome = RunProgram({"devices"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("rxe0: would be chosen\n  made of software"));
}

TEST_F(ClusterVerbsTest, TpccHoldsWhoeverComesFirstAndWhoeverIsKilled) {
  setenv("COLUMNS", "1000", 1);  // so that no line of the report is broken
  const std::string address = AddressOfDevice(/*ipv6=*/false);
  WriteCluster("cluster.toml", address, "secret_file = \"secret\"");
  Program first(Tpcc("run", {"--duration", "1s", "--warmup", "0s", "--threads", "2"}));
  for (const int id : {2, 0, 1}) StartServer(id, "cluster.toml", kMetrics);
  const Outcome ran = first.Wait();
  EXPECT_EQ(ran.exit_code, 0) << ran.err << ran.out;
  EXPECT_THAT(ran.out, HasSubstr("cluster.toml (verbs), as its client in slot 0"));
  EXPECT_THAT(ran.out, HasSubstr("12  holds"));
  WaitUntilServing();

  WriteSecret("other secret", "another that somebody made up");
  WriteCluster("stranger.toml", address, "secret_file = \"other secret\"");
  ExpectRefused(Tpcc("run", {}, "stranger.toml"), "node 0: refused: the peer does not know the cluster's secret");
  WriteCluster("other.toml", address, "secret_file = \"secret\"", /*seed=*/2);
  ExpectRefused(Tpcc("run", {}, "other.toml"), "another configuration");
  ExpectRefused(Serve(1), "another process has the port");
  EXPECT_TRUE(servers_[0]->WaitForStderr("refused ")) << servers_[0]->Wait().err;

  auto victim = StartClient();
  ExpectRefused(Tpcc("run"), kNoSlot);
  victim->Signal(SIGKILL);
  EXPECT_EQ(victim->Wait().exit_code, 128 + SIGKILL);
  // The slot is free as soon as server 0 has noticed the death.
  Outcome check = RunProgram(Tpcc("check"));
  while (absl::StrContains(check.err, kNoSlot)) check = RunProgram(Tpcc("check"));
  EXPECT_EQ(check.exit_code, 0) << check.err << check.out;
  EXPECT_THAT(check.out, HasSubstr("12  holds"));
  StopServers();
}

// The cluster runs over IPv6, with waiting threads asleep, and with the secret in the environment.
TEST_F(ClusterVerbsTest, AKilledServerIsUnavailableAndCannotJustComeBack) {
  const std::string address = AddressOfDevice(/*ipv6=*/true);
  ASSERT_FALSE(address.empty()) << "give the device's interface an IPv6 address, too";
  ASSERT_EQ(setenv("GANNET_CLUSTER_SECRET", "what the nodes of a test know", 1), 0);
  WriteCluster("cluster.toml", address, "completions = \"events\"");
  for (int id = 0; id < kServers; ++id) StartServer(id, "cluster.toml", kMetrics);
  WaitUntilServing();
  auto client = StartClient();
  KillServerUnder(client.get());
  ExpectRefused(Serve(1), "was in this cluster before");
  StopServers();
  EXPECT_EQ(unsetenv("GANNET_CLUSTER_SECRET"), 0);
}

}  // namespace cluster_verbs_test
}  // namespace gannet::cli
