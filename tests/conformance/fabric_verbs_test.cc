// The verbs fabric passes the conformance suite on any RDMA device of this machine: as threads of one process and as
// processes. tests/softroce runs it where there is no device.
//
// For processes, this program starts itself again as `--peer <node> <address>...`.
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "tests/conformance/fabric_suite.h"
#include "tests/conformance/verbs_cluster.h"

namespace gannet::rdma::conformance {
namespace {

std::unique_ptr<VerbsFabric> MakeFabric(const VerbsOptions& options) {
  auto fabric = VerbsFabric::Create(options);
  GANNET_CHECK(fabric.ok(), "%s", fabric.status().ToString());
  return *std::move(fabric);
}

std::unique_ptr<Node> Attach(VerbsFabric* fabric, NodeId id) {
  auto node = fabric->Attach(id);
  GANNET_CHECK(node.ok(), "%s", node.status().ToString());
  return *std::move(node);
}

// Every node has its own fabric, as it would in its own process.
class ThreadHarness final : public FabricHarness {
 public:
  explicit ThreadHarness(int num_nodes)
      : options_(LocalVerbsCluster(num_nodes, kHarnessBytesPerNode)),
        fabric_(MakeFabric(options_)),
        node_(Attach(fabric_.get(), 0)) {
    for (int i = 1; i < num_nodes; ++i) Restart(static_cast<NodeId>(i));
  }

  Fabric& fabric() override { return *fabric_; }
  Node& node() override { return *node_; }
  void Kill(NodeId peer) override { peers_.at(peer).fabric->Kill(peer); }
  void Restart(NodeId peer) override {
    peers_.erase(peer);
    Peer& made = peers_[peer];
    made.fabric = MakeFabric(options_);
    made.program = std::make_unique<FabricPeer>(made.fabric.get(), peer);
  }
  absl::Duration patience() const override { return absl::Seconds(60); }
  bool adversarial() const override { return false; }

 private:
  struct Peer {
    std::unique_ptr<VerbsFabric> fabric;
    std::unique_ptr<FabricPeer> program;
  };

  VerbsOptions options_;
  std::unique_ptr<VerbsFabric> fabric_;
  std::unique_ptr<Node> node_;
  std::map<NodeId, Peer> peers_;
};

class ProcessHarness final : public FabricHarness {
 public:
  explicit ProcessHarness(int num_nodes)
      : options_(LocalVerbsCluster(num_nodes, kHarnessBytesPerNode)),
        fabric_(MakeFabric(options_)),
        node_(Attach(fabric_.get(), 0)) {
    for (int i = 1; i < num_nodes; ++i) Restart(static_cast<NodeId>(i));
  }
  ~ProcessHarness() override {
    for (const auto& [peer, pid] : pids_) End(pid);
  }

  Fabric& fabric() override { return *fabric_; }
  Node& node() override { return *node_; }
  void Kill(NodeId peer) override { kill(pids_.at(peer), SIGKILL); }
  void Restart(NodeId peer) override {
    if (pids_.contains(peer)) End(pids_.at(peer));
    std::vector<std::string> words{"/proc/self/exe", "--peer", std::to_string(peer)};
    words.insert(words.end(), options_.nodes.begin(), options_.nodes.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_t pid = 0;
    const int error = posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, arguments.data(), environ);
    GANNET_CHECK(error == 0, "cannot start a peer: error %d", error);
    pids_[peer] = pid;
  }
  absl::Duration patience() const override { return absl::Seconds(60); }
  bool adversarial() const override { return false; }

 private:
  static void End(pid_t pid) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }

  VerbsOptions options_;
  std::unique_ptr<VerbsFabric> fabric_;
  std::unique_ptr<Node> node_;
  std::map<NodeId, pid_t> pids_;
};

template <class Harness>
FabricFactory Factory(std::string name) {
  return {std::move(name), [](int num_nodes) { return std::make_unique<Harness>(num_nodes); }};
}

INSTANTIATE_TEST_SUITE_P(Verbs, FabricSuite,
                         ::testing::Values(Factory<ThreadHarness>("threads"), Factory<ProcessHarness>("processes")),
                         NameOfFactory);

int RunPeer(char** arguments, int count) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // dies with the test
  VerbsOptions options = LocalVerbsCluster(count - 1, kHarnessBytesPerNode);
  options.nodes.assign(arguments + 1, arguments + count);
  const std::unique_ptr<VerbsFabric> fabric = MakeFabric(options);
  const FabricPeer peer(fabric.get(), static_cast<NodeId>(std::atoi(arguments[0])));
  for (;;) pause();
}

}  // namespace
}  // namespace gannet::rdma::conformance

int main(int argc, char** argv) {
  if (argc > 3 && std::string(argv[1]) == "--peer") {
    return gannet::rdma::conformance::RunPeer(argv + 2, argc - 2);
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
