// The shm fabric passes the conformance suite: as threads and as processes, plain and adversarial.
//
// For processes, this program starts itself again as `--peer <memory file> <node>`.
#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "rdma/shm/shm_fabric.h"
#include "tests/conformance/fabric_suite.h"

namespace gannet::rdma::conformance {
namespace {

class ThreadHarness final : public FabricHarness {
 public:
  ThreadHarness(int num_nodes, bool adversarial)
      : adversarial_(adversarial),
        fabric_(ShmFabric::InProcess(
                    {.num_nodes = num_nodes, .bytes_per_node = kHarnessBytesPerNode, .adversarial = adversarial})
                    .value()),
        node_(fabric_->Attach(0).value()) {
    for (int i = 1; i < num_nodes; ++i) Restart(static_cast<NodeId>(i));
  }

  Fabric& fabric() override { return *fabric_; }
  Node& node() override { return *node_; }
  void Kill(NodeId peer) override { fabric_->Kill(peer); }
  void Restart(NodeId peer) override {
    peers_.erase(peer);
    peers_.emplace(peer, std::make_unique<FabricPeer>(fabric_.get(), peer));
  }
  bool adversarial() const override { return adversarial_; }

 private:
  bool adversarial_;
  std::unique_ptr<ShmFabric> fabric_;
  std::unique_ptr<Node> node_;
  std::map<NodeId, std::unique_ptr<FabricPeer>> peers_;
};

class ProcessHarness final : public FabricHarness {
 public:
  ProcessHarness(int num_nodes, bool adversarial)
      : adversarial_(adversarial), path_(absl::StrCat(::testing::TempDir(), "/gannet_fabric_", getpid())) {
    fabric_ = ShmFabric::Create(
                  path_, {.num_nodes = num_nodes, .bytes_per_node = kHarnessBytesPerNode, .adversarial = adversarial})
                  .value();
    node_ = fabric_->Attach(0).value();
    for (int i = 1; i < num_nodes; ++i) Restart(static_cast<NodeId>(i));
  }
  ~ProcessHarness() override {
    for (const auto& [peer, pid] : pids_) End(pid);
  }

  Fabric& fabric() override { return *fabric_; }
  Node& node() override { return *node_; }
  // The process is not reaped yet: even a zombie counts as dead.
  void Kill(NodeId peer) override { kill(pids_.at(peer), SIGKILL); }
  void Restart(NodeId peer) override {
    if (pids_.contains(peer)) End(pids_.at(peer));
    const std::string id = std::to_string(peer);
    std::string program = "/proc/self/exe", flag = "--peer", path = path_, node = id;
    char* arguments[] = {program.data(), flag.data(), path.data(), node.data(), nullptr};
    pid_t pid = 0;
    const int error = posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, arguments, environ);
    GANNET_CHECK(error == 0, "cannot start a peer: error %d", error);
    pids_[peer] = pid;
  }
  bool adversarial() const override { return adversarial_; }

 private:
  static void End(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }

  bool adversarial_;
  std::string path_;
  std::unique_ptr<ShmFabric> fabric_;
  std::unique_ptr<Node> node_;
  std::map<NodeId, pid_t> pids_;
};

template <class Harness>
FabricFactory Factory(std::string name, bool adversarial) {
  return {std::move(name), [adversarial](int num_nodes) { return std::make_unique<Harness>(num_nodes, adversarial); }};
}

INSTANTIATE_TEST_SUITE_P(Shm, FabricSuite,
                         ::testing::Values(Factory<ThreadHarness>("threads", false),
                                           Factory<ThreadHarness>("threads_adversarial", true),
                                           Factory<ProcessHarness>("processes", false),
                                           Factory<ProcessHarness>("processes_adversarial", true)),
                         NameOfFactory);

int RunPeer(const char* path, const char* node) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // dies with the test
  auto fabric = ShmFabric::Join(path);
  GANNET_CHECK(fabric.ok(), "%s", fabric.status().ToString());
  const FabricPeer peer(fabric->get(), static_cast<NodeId>(std::atoi(node)));
  for (;;) pause();
}

}  // namespace
}  // namespace gannet::rdma::conformance

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "--peer") return gannet::rdma::conformance::RunPeer(argv[2], argv[3]);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
