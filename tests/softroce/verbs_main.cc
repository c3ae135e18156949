// The main function of test programs whose clusters use this machine's RDMA device: all nodes in this process or, for
// tests whose nodes are processes, in those.
#include <algorithm>
#include <memory>

#include "base/check.h"
#include "gtest/gtest.h"
#include "tests/conformance/verbs_cluster.h"
#include "tests/rdma/shared_fabric.h"
#include "tests/rdma/test_fabric.h"

namespace gannet::rdma {
namespace {

// All memory of a node is pinned, and a virtual machine has little.
constexpr uint64_t kMostBytesPerNode = 96 << 20;

TestFabric MakeVerbs(const TestFabricOptions& options) {
  const VerbsOptions verbs =
      conformance::LocalVerbsCluster(options.num_nodes, std::min(options.bytes_per_node, kMostBytesPerNode));
  const auto make = [verbs] {
    auto fabric = VerbsFabric::Create(verbs);
    GANNET_CHECK(fabric.ok(), "%s", fabric.status().ToString());
    return *std::move(fabric);
  };
  std::unique_ptr<VerbsFabric> fabric = make();
  VerbsFabric* raw = fabric.get();
  // A virtual machine may stand still for seconds.
  TestFabric result{
      .fabric = std::move(fabric), .kill = [raw](NodeId id) { raw->Kill(id); }, .call_timeout = absl::Seconds(60)};
  return result;
}

// Every process computes the same addresses by itself, one cluster after the other.
SharedFabric MakeSharedVerbs(const SharedFabricOptions& options) {
  VerbsOptions verbs = conformance::LocalVerbsCluster(options.servers, options.bytes_per_node);
  const int nodes = options.servers + options.clients;
  verbs.nodes.resize(static_cast<size_t>(nodes));
  if (options.impatient) verbs.silence_limit = ImpatientLimit();
  auto fabric = VerbsFabric::Create(verbs);
  GANNET_CHECK(fabric.ok(), "%s", fabric.status().ToString());
  return {*std::move(fabric), absl::Seconds(60)};
}

}  // namespace
}  // namespace gannet::rdma

int main(int argc, char** argv) {
  gannet::rdma::MakerOfTestFabrics() = gannet::rdma::MakeVerbs;
  gannet::rdma::MakerOfSharedFabrics() = gannet::rdma::MakeSharedVerbs;
  gannet::rdma::ImpatientLimit() = absl::Seconds(5);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
