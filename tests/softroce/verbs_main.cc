// The main of test programs whose clusters are to be on this machine's RDMA device, all nodes in this process.
#include <algorithm>

#include "gtest/gtest.h"
#include "rdma/base/check.h"
#include "tests/conformance/verbs_cluster.h"
#include "tests/rdma/test_fabric.h"

namespace gannet::rdma {
namespace {

// All memory of a node is pinned, and a virtual machine has little.
constexpr uint64_t kMostBytesPerNode = 96 << 20;

TestFabric MakeVerbs(const TestFabricOptions& options) {
  auto fabric = VerbsFabric::Create(
      conformance::LocalVerbsCluster(options.num_nodes, std::min(options.bytes_per_node, kMostBytesPerNode)));
  GANNET_CHECK(fabric.ok(), "%s", fabric.status().ToString());
  VerbsFabric* raw = fabric->get();
  // An emulated machine may stand still for seconds.
  return {*std::move(fabric), [raw](NodeId id) { raw->Kill(id); }, absl::Seconds(60)};
}

}  // namespace
}  // namespace gannet::rdma

int main(int argc, char** argv) {
  gannet::rdma::MakerOfTestFabrics() = gannet::rdma::MakeVerbs;
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
