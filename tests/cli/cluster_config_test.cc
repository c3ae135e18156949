#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cli/cluster/config.h"
#include "cli/cluster/secret.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gannet::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kGood = R"(fabric = "shm"
client_slots = 4

[shm]
memory_file = "/dev/shm/x"

[tpcc]
warehouses = 5
seed = 7

[[server]]
id = 1
name = "beta"
memory = "64M"
server_threads = 2

[[server]]
id = 0
memory = "1G"
)";

std::string With(const std::string& from, const std::string& to) {
  std::string text = kGood;
  EXPECT_EQ(absl::StrReplaceAll({{absl::string_view(from.data(), from.size()), to}}, &text), 1) << from;
  return text;
}

TEST(ClusterConfigTest, SaysWhatTheFileSays) {
  const StatusOr<ClusterConfig> config = ParseClusterConfig(kGood, "c.toml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->fabric, FabricKind::kShm);
  EXPECT_EQ(config->memory_file, "/dev/shm/x");
  EXPECT_EQ(config->num_servers(), 2);
  EXPECT_EQ(config->num_nodes(), 6);
  EXPECT_EQ(config->servers[0].name, "node 0");
  EXPECT_EQ(config->servers[0].memory, uint64_t{1} << 30);
  EXPECT_EQ(config->servers[0].server_threads, 1);
  EXPECT_EQ(config->servers[1].name, "beta");
  EXPECT_EQ(config->servers[1].server_threads, 2);
  EXPECT_EQ(config->tpcc.warehouses, 5);
  EXPECT_EQ(config->tpcc.seed, 7u);
  EXPECT_EQ(config->tpcc.items, 100000u);
  EXPECT_EQ(config->tpcc.customers_per_district, 3000u);
  EXPECT_EQ(*config->FindServer("1"), 1);
  EXPECT_EQ(*config->FindServer("beta"), 1);
  EXPECT_THAT(std::string(config->FindServer("7").status().message()), HasSubstr("0 (node 0), 1 (beta)"));
}

TEST(ClusterConfigTest, EveryMistakeIsToldWithItsLineAndWhatToWrite) {
  struct Case {
    std::string text;
    std::string begins;
    std::string says;
  };
  const std::vector<Case> cases = {
      {With("fabric = \"shm\"", "fabric = \"tcp\""), "c.toml:1: fabric: ", "\"verbs\" (RDMA), not \"tcp\""},
      {With("fabric = \"shm\"\n", ""), "c.toml:1: fabric: ", "is missing; add a line such as: fabric = \"shm\""},
      {With("fabric = \"shm\"", "fabric = "), "c.toml:1: ", ""},
      {With("client_slots", "client_slot"), "c.toml:2: client_slot: ", "no such key here; the keys are client_slots"},
      {With("client_slots = 4", "client_slots = \"4\""), "c.toml:2: client_slots: ", "a whole number from 1 to 63"},
      {With("client_slots = 4", "client_slots = 63"), "c.toml:11: server: ", "at most 64"},
      {With("[shm]\nmemory_file = \"/dev/shm/x\"\n", ""), "c.toml:1: shm: ", "the table is missing"},
      {With("memory_file =", "path ="), "c.toml:4: [shm] memory_file: ", "is missing"},
      {With("[tpcc]\nwarehouses = 5\nseed = 7\n", ""), "c.toml:1: tpcc: ", "the table is missing"},
      {With("warehouses = 5", "warehouses = 1"), "c.toml:8: [tpcc] warehouses: ", "from 2 to 65535"},
      {With("seed = 7", "seed = -7"), "c.toml:9: [tpcc] seed: ", "a whole number from 0"},
      {With("seed = 7", "sede = 7"), "c.toml:9: [tpcc] sede: ", "no such key"},
      {With("id = 1", "id = 0"), "c.toml:18: [[server]] id: ", "there is a server 0 already"},
      {With("id = 1", "id = 2"), "c.toml:12: [[server]] id: ", "from 0 to 1"},
      {With("id = 1\n", ""), "c.toml:11: [[server]] id: ", "is missing"},
      {With("name = \"beta\"", "name = \"node 1\"\naddres = \"x\""), "c.toml:14: [[server]] addres: ", "no such key"},
      {With("name = \"beta\"", "name = 7"), "c.toml:13: [[server]] name: ", "must be a string"},
      {With("id = 0", "id = 0\nname = \"beta\""), "c.toml:19: [[server]] name: ", "\"beta\" already"},
      {With("memory = \"64M\"", "memory = \"64 apples\""), "c.toml:14: [[server]] memory: ", ""},
      {With("memory = \"64M\"", "memory = \"1M\""), "c.toml:14: [[server]] memory: ", "at least \"16M\""},
      {With("memory = \"64M\"", "memory = 64"), "c.toml:14: [[server]] memory: ", "such as \"4G\""},
      {With("server_threads = 2", "server_threads = 0"), "c.toml:15: [[server]] server_threads: ", "from 1 to 64"},
      {With("fabric = \"shm\"", "fabric = \"verbs\"\nverbs = {secret_file = \"s\"}"),
       "c.toml:12: [[server]] address: ", "is missing"},
      {"server = 3\nfabric = \"shm\"\nshm = {memory_file = \"x\"}", "c.toml:1: server: ", "[[server]]"},
      {"fabric = \"shm\"\nshm = {memory_file = \"x\"}", "c.toml:1: server: ", "is missing"},
      {"fabric = \"shm\"\nshm = 3", "c.toml:2: shm: ", "write [shm]"},
  };
  for (const Case& c : cases) {
    const Status status = ParseClusterConfig(c.text, "c.toml").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status << "\n" << c.text;
    EXPECT_THAT(std::string(status.message()), AllOf(StartsWith(c.begins), HasSubstr(c.says))) << c.text;
  }
}

constexpr const char* kOverVerbs = R"(fabric = "verbs"
client_slots = 2
[verbs]
secret_file = "s"
client_memory = "64M"
completions = "events"
silence_limit = "2s"
[tpcc]
warehouses = 1
[[server]]
id = 0
address = "[2001:db8::1]:7471"
device = "mlx5_0"
port = 2
gid = 3
memory = "1G"
)";

TEST(ClusterConfigTest, SaysWhatTheFileSaysOfVerbs) {
  const StatusOr<ClusterConfig> config = ParseClusterConfig(kOverVerbs, "c.toml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->fabric, FabricKind::kVerbs);
  EXPECT_EQ(config->verbs.secret_file, "s");
  EXPECT_EQ(config->verbs.client_memory, uint64_t{64} << 20);
  EXPECT_EQ(config->verbs.completions, Completions::kEvents);
  EXPECT_EQ(config->verbs.silence_limit, absl::Seconds(2));
  EXPECT_EQ(config->servers[0].address, "[2001:db8::1]:7471");
  EXPECT_EQ(config->servers[0].device, "mlx5_0");
  EXPECT_EQ(config->servers[0].port, 2);
  EXPECT_EQ(config->servers[0].gid, 3);
}

TEST(ClusterConfigTest, MistakesAboutVerbsAreToldToo) {
  const struct {
    const char* from;
    const char* to;
    const char* begins;
    const char* says;
  } cases[] = {
      {"\"events\"", "\"never\"", "c.toml:6: [verbs] completions: ", "\"poll\", \"adaptive\" or \"events\""},
      {"\"64M\"", "\"1M\"", "c.toml:5: [verbs] client_memory: ", "at least \"16M\""},
      {"\"2s\"", "\"2\"", "c.toml:7: [verbs] silence_limit: ", "duration"},
      {"secret_file", "secret", "c.toml:4: [verbs] secret: ", "no such key"},
      {"port = 2", "port = 0", "c.toml:14: [[server]] port: ", "from 1"},
      {"gid = 3", "gid = -3", "c.toml:15: [[server]] gid: ", "from 0"},
  };
  for (const auto& [from, to, begins, says] : cases) {
    std::string text = kOverVerbs;
    ASSERT_EQ(absl::StrReplaceAll({{from, to}}, &text), 1) << from;
    const Status status = ParseClusterConfig(text, "c.toml").status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(StartsWith(begins), HasSubstr(says)));
  }
}

TEST(SecretTest, ComesFromAFileOfItsOwnersOrFromTheEnvironment) {
  const std::string file = absl::StrCat(::testing::TempDir(), "/gannet_secret_", getpid());
  ClusterConfig config{.file = "c.toml"};
  config.verbs.secret_file = file;
  EXPECT_THAT(std::string(ReadSecret(config).status().message()), HasSubstr("openssl rand"));
  std::ofstream(file) << "a secret of some length\n";
  ASSERT_EQ(chmod(file.c_str(), 0640), 0);
  EXPECT_THAT(std::string(ReadSecret(config).status().message()), HasSubstr("chmod 600"));
  ASSERT_EQ(chmod(file.c_str(), 0600), 0);
  ASSERT_TRUE(ReadSecret(config).ok()) << ReadSecret(config).status();
  EXPECT_EQ(*ReadSecret(config), "a secret of some length");
  std::ofstream(file) << "short\n";
  EXPECT_THAT(std::string(ReadSecret(config).status().message()), HasSubstr("has 5 bytes"));
  std::filesystem::remove(file);

  config.verbs.secret_file.clear();
  ASSERT_EQ(unsetenv(kSecretVariable), 0);
  EXPECT_THAT(std::string(ReadSecret(config).status().message()), HasSubstr(kSecretVariable));
  ASSERT_EQ(setenv(kSecretVariable, "a secret that is inherited", 1), 0);
  EXPECT_EQ(ReadSecret(config).value(), "a secret that is inherited");
  ASSERT_EQ(unsetenv(kSecretVariable), 0);
}

TEST(ClusterConfigTest, TheHashIsOfWhatAllMustAgreeOn) {
  const auto hash = [](const std::string& text) { return ParseClusterConfig(text, "c.toml")->Hash(); };
  const uint64_t good = hash(kGood);
  EXPECT_EQ(hash(With("server_threads = 2", "server_threads = 3")), good);
  EXPECT_EQ(hash(With("name = \"beta\"", "name = \"gamma\"")), good);
  for (const char* changed : {"seed = 8", "warehouses = 6\nseed = 7", "seed = 7\nitems = 500"}) {
    const std::string from = std::string(changed).starts_with("warehouses") ? "warehouses = 5\nseed = 7" : "seed = 7";
    EXPECT_NE(hash(With(from, changed)), good) << changed;
  }
  EXPECT_NE(hash(With("client_slots = 4", "client_slots = 5")), good);
  EXPECT_NE(hash(With("memory = \"64M\"", "memory = \"65M\"")), good);
}

TEST(ClusterConfigTest, ARelativeFileNameIsRelativeToTheClusterFile) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/gannet_config_test_", getpid(), ".toml");
  std::ofstream(path) << With("/dev/shm/x", "x");
  const StatusOr<ClusterConfig> config = ReadClusterConfig(path);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->memory_file.find(::testing::TempDir()), 0u) << config->memory_file;
  unlink(path.c_str());
  EXPECT_TRUE(absl::IsNotFound(ReadClusterConfig(path).status()));
}

TEST(ClusterConfigTest, TheExampleIsRight) {
  const StatusOr<ClusterConfig> config = ReadClusterConfig(GANNET_SOURCE_DIR "/examples/cluster.toml");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->num_servers(), 3);
}

}  // namespace
}  // namespace gannet::cli
