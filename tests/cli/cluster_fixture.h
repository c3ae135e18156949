// Shared by tests of long-lived processes: a directory for their files, servers by id, clients that run TPC-C
// or YCSB.
#pragma once

#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/program.h"

namespace gannet::cli {

class ClusterFixture : public ::testing::Test {
 protected:
  ClusterFixture() {
    std::filesystem::remove_all(scratch_);
    std::filesystem::create_directories(scratch_);
  }
  ~ClusterFixture() override {
    servers_.clear();
    std::filesystem::remove_all(scratch_);
  }

  std::string Path(const std::string& name) const { return (scratch_ / name).string(); }

  static std::vector<std::string> Joined(std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  std::vector<std::string> Serve(int id, const std::string& file = "cluster.toml",
                                 const std::vector<std::string>& flags = {}) const {
    return Joined({"serve", "--cluster", Path(file), "--node", absl::StrCat(id)}, flags);
  }
  void StartServer(int id, const std::string& file = "cluster.toml", const std::vector<std::string>& flags = {}) {
    servers_[id] = std::make_unique<Program>(Serve(id, file, flags));
  }
  void WaitUntilServing() {
    for (const auto& [id, server] : servers_) {
      ASSERT_TRUE(server->WaitForStdout("ready: node ")) << id << ": " << server->Wait().err;
    }
  }
  // Asks all servers to leave, and waits until they have.
  void StopServers() {
    for (const auto& [id, server] : servers_) server->Signal(SIGTERM);
    for (const auto& [id, server] : servers_) {
      const Outcome outcome = server->Wait();
      EXPECT_EQ(outcome.exit_code, 0) << id << ": " << outcome.err;
    }
    servers_.clear();
  }

  std::vector<std::string> Tpcc(const std::string& verb, const std::vector<std::string>& flags = {},
                                const std::string& file = "cluster.toml") const {
    return Joined({"tpcc", verb, "--cluster", Path(file)}, flags);
  }
  std::vector<std::string> Ycsb(const std::vector<std::string>& flags = {},
                                const std::string& file = "cluster.toml") const {
    return Joined({"ycsb", "--cluster", Path(file)}, flags);
  }
  // Starts a client of TPC-C that runs until it is stopped, and waits until it has committed something.
  std::unique_ptr<Program> StartClient(const std::vector<std::string>& flags = {}) const {
    auto client = std::make_unique<Program>(
        Tpcc("run", Joined({"--duration", "10m", "--warmup", "0s", "--interval", "50ms"}, flags)),
        Surroundings{.err_is_terminal = true});
    EXPECT_TRUE(client->WaitForStderr("transactions/s")) << client->Wait().err;
    return client;
  }

  // Kills server 1. `client`, which runs, must end by itself and name the server.
  void KillServerUnder(Program* client) {
    servers_[1]->Signal(SIGKILL);
    EXPECT_EQ(servers_[1]->Wait().exit_code, 128 + SIGKILL);
    servers_.erase(1);
    const Outcome outcome = client->Wait();
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.err, ::testing::HasSubstr("server 1 (node 1) of"));
    EXPECT_THAT(outcome.err, ::testing::HasSubstr("is gone, and its data with it"));
  }
  // The server that was killed cannot come back while the others run.
  void ExpectServerStaysOut() const {
    const Outcome again = RunProgram(Serve(1));
    EXPECT_EQ(again.exit_code, 1);
    EXPECT_THAT(again.err, ::testing::HasSubstr("Stop all processes of the cluster"));
  }

  const std::filesystem::path scratch_ =
      std::filesystem::path(::testing::TempDir()) /
      absl::StrCat("gannet_cluster_", getpid(), "_", ::testing::UnitTest::GetInstance()->current_test_info()->name());
  std::map<int, std::unique_ptr<Program>> servers_;
};

}  // namespace gannet::cli
