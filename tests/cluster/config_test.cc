#include "cluster/config/config.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "cluster/join/secret.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gannet::cluster {
namespace config_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kGood = R"(fabric = "shm"
client_slots = 4

[shm]
memory_file = "/dev/shm/x"

[bank]
accounts = 5
name = "x"

[[server]]
id = 1
name = "beta"
memory = "64M"
server_threads = 2

[[server]]
id = 0
memory = "1G"
)";

// The settings of a program in the file.
struct Bank {
  int64_t accounts = 0;
  std::string name;
};

StatusOr<Config> Parse(const std::string& text, Bank* bank) {
  return ParseConfig(
      text, "c.toml",
      {{.name = "bank", .purpose = "it says what the servers load", .read = [bank](Section& s, const Config& config) {
          GANNET_RETURN_IF_ERROR(s.NeedInteger("accounts", config.num_servers(), 1000, "100", &bank->accounts));
          return s.TakeString("name", "\"mine\"", &bank->name);
        }}});
}
StatusOr<Config> Parse(const std::string& text) {
  Bank bank;
  return Parse(text, &bank);
}

std::string With(const std::string& from, const std::string& to) {
  std::string text = kGood;
  EXPECT_EQ(absl::StrReplaceAll({{absl::string_view(from.data(), from.size()), to}}, &text), 1) << from;
  return text;
}

TEST(ConfigTest, SaysWhatTheFileSays) {
  Bank bank;
  const StatusOr<Config> config = Parse(kGood, &bank);
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
  EXPECT_EQ(bank.accounts, 5);
  EXPECT_EQ(bank.name, "x");
  EXPECT_EQ(config->NameOfNode(1), "server 1 (beta)");
  EXPECT_EQ(config->NameOfNode(3), "client slot 1");
  EXPECT_EQ(*config->FindServer("1"), 1);
  EXPECT_EQ(*config->FindServer("beta"), 1);
  EXPECT_THAT(std::string(config->FindServer("7").status().message()), HasSubstr("0 (node 0), 1 (beta)"));
}

TEST(ConfigTest, EveryMistakeIsToldWithItsLineAndWhatToWrite) {
  struct Case {
    std::string text;
    std::string begins;
    std::string says;
  };
  const std::vector<Case> cases = {
      {With("fabric = \"shm\"", "fabric = \"tcp\""), "c.toml:1: fabric: ", "\"verbs\" (RDMA), not \"tcp\""},
      {With("fabric = \"shm\"\n", ""), "c.toml:1: fabric: ", "is missing; add a line such as: fabric = \"shm\""},
      {With("fabric = \"shm\"", "fabric = "), "c.toml:1: ", ""},
      {With("client_slots", "client_slot"),
       "c.toml:2: client_slot: ", "no such key here; the keys are bank, client_slots"},
      {With("client_slots = 4", "client_slots = \"4\""), "c.toml:2: client_slots: ", "a whole number from 1 to 63"},
      {With("client_slots = 4", "client_slots = 63"), "c.toml:11: server: ", "at most 64"},
      {With("[shm]\nmemory_file = \"/dev/shm/x\"\n", ""), "c.toml:1: shm: ", "the table is missing"},
      {With("memory_file =", "path ="), "c.toml:4: [shm] memory_file: ", "is missing"},
      {With("[bank]\naccounts = 5\nname = \"x\"\n", ""),
       "c.toml:1: bank: ", "the table is missing; it says what the servers load"},
      {With("accounts = 5", "accounts = 1"), "c.toml:8: [bank] accounts: ", "a whole number from 2 to 1000"},
      {With("accounts = 5\n", ""), "c.toml:7: [bank] accounts: ", "add a line such as: accounts = 100"},
      {With("name = \"x\"", "nmae = \"x\""),
       "c.toml:9: [bank] nmae: ", "no such key here; the keys are accounts, name"},
      {With("[[server]]\nid = 1", "[queue]\n[[server]]\nid = 1"),
       "c.toml:11: queue: ", "no such key here; the keys are bank"},
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
    const Status status = Parse(c.text).status();
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
[[server]]
id = 0
address = "[2001:db8::1]:7471"
device = "mlx5_0"
port = 2
gid = 3
memory = "1G"
)";

TEST(ConfigTest, SaysWhatTheFileSaysOfVerbs) {
  const StatusOr<Config> config = ParseConfig(kOverVerbs, "c.toml", {});
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

TEST(ConfigTest, MistakesAboutVerbsAreToldToo) {
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
      {"port = 2", "port = 0", "c.toml:12: [[server]] port: ", "from 1"},
      {"gid = 3", "gid = -3", "c.toml:13: [[server]] gid: ", "from 0"},
  };
  for (const auto& [from, to, begins, says] : cases) {
    std::string text = kOverVerbs;
    ASSERT_EQ(absl::StrReplaceAll({{from, to}}, &text), 1) << from;
    const Status status = ParseConfig(text, "c.toml", {}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(StartsWith(begins), HasSubstr(says)));
  }
}

TEST(SecretTest, ComesFromAFileOfItsOwnersOrFromTheEnvironment) {
  const std::string file = absl::StrCat(::testing::TempDir(), "/gannet_secret_", getpid());
  Config config{.file = "c.toml"};
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

TEST(ConfigTest, TheHashIsOfWhatAllMustAgreeOn) {
  const auto hash = [](const std::string& text) { return Parse(text)->Hash(); };
  const uint64_t good = hash(kGood);
  EXPECT_EQ(hash(With("server_threads = 2", "server_threads = 3")), good);
  EXPECT_EQ(hash(With("name = \"beta\"", "name = \"gamma\"")), good);
  EXPECT_EQ(hash(With("accounts = 5\nname = \"x\"", "name = 'x'  # mine\naccounts = 5")), good);
  EXPECT_NE(hash(With("accounts = 5", "accounts = 6")), good);
  EXPECT_NE(hash(With("name = \"x\"\n", "")), good);
  EXPECT_NE(hash(With("client_slots = 4", "client_slots = 5")), good);
  EXPECT_NE(hash(With("memory = \"64M\"", "memory = \"65M\"")), good);
}

TEST(ConfigTest, ATableOfAProgramMayBeAbsentIfItHasNoPurpose) {
  bool read = false;
  const std::vector<SectionReader> readers = {{.name = "queue", .purpose = "", .read = [&](Section&, const Config&) {
                                                 read = true;
                                                 return absl::OkStatus();
                                               }}};
  const std::string without = With("[bank]\naccounts = 5\nname = \"x\"\n", "");
  const StatusOr<Config> absent = ParseConfig(without, "c.toml", readers);
  ASSERT_TRUE(absent.ok()) << absent.status();
  EXPECT_FALSE(read);
  EXPECT_TRUE(absent->sections.empty());
  const StatusOr<Config> present =
      ParseConfig(With("[bank]\naccounts = 5\nname = \"x\"\n", "[queue]\n"), "c.toml", readers);
  ASSERT_TRUE(present.ok()) << present.status();
  EXPECT_TRUE(read);
  EXPECT_NE(present->Hash(), absent->Hash());
}

TEST(ConfigTest, ARelativeFileNameIsRelativeToTheClusterFile) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/gannet_config_test_", getpid(), ".toml");
  std::string text = With("/dev/shm/x", "x");
  ASSERT_EQ(absl::StrReplaceAll({{"[bank]\naccounts = 5\nname = \"x\"\n", ""}}, &text), 1);
  std::ofstream(path) << text;
  const StatusOr<Config> config = ReadConfig(path, {});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->memory_file.find(::testing::TempDir()), 0u) << config->memory_file;
  unlink(path.c_str());
  EXPECT_TRUE(absl::IsNotFound(ReadConfig(path, {}).status()));
}

}  // namespace config_test
}  // namespace gannet::cluster
