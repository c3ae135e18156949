// The sim fabric passes the conformance suite: with an ideal NIC and a modelled one, well-behaved and as adversarial as
// the contract allows.
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "rdma/sim/sim_fabric.h"
#include "tests/conformance/fabric_suite.h"

namespace gannet::rdma::conformance {
namespace fabric_sim_test {

using sim::Faults;
using sim::SimFabric;
using sim::Simulation;

class SimHarness final : public FabricHarness {
 public:
  SimHarness(int num_nodes, const std::string& nic, const Faults& faults)
      : adversarial_(faults.Any()),
        simulation_({.faults = faults}),
        fabric_(SimFabric::Create(
                    &simulation_,
                    {.num_nodes = num_nodes, .bytes_per_node = kHarnessBytesPerNode, .nic = *sim::FindNicProfile(nic)})
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
  Simulation simulation_;
  std::unique_ptr<SimFabric> fabric_;
  std::unique_ptr<Node> node_;
  std::map<NodeId, std::unique_ptr<FabricPeer>> peers_;
};

FabricFactory Factory(std::string name, const std::string& nic, const Faults& faults) {
  return {std::move(name),
          [nic, faults](int num_nodes) { return std::make_unique<SimHarness>(num_nodes, nic, faults); }};
}

// Faults that the contract allows. Faults that break connections or lose messages are in tests/rdma/sim.
constexpr Faults kAdversarial{.scatter_lines = 0.5, .preempt = 0.02, .slow_completion = 0.05};

INSTANTIATE_TEST_SUITE_P(Sim, FabricSuite,
                         ::testing::Values(Factory("ideal", "ideal", {}), Factory("cx4", "cx4-100g", {}),
                                           Factory("ideal_adversarial", "ideal", kAdversarial),
                                           Factory("cx4_adversarial", "cx4-100g", kAdversarial)),
                         NameOfFactory);

}  // namespace fabric_sim_test
}  // namespace gannet::rdma::conformance
