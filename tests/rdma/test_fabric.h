// The fabric of test clusters. It is shared memory, unless the program's main chooses another fabric before any test
// runs; so the same tests also run on real verbs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/check.h"
#include "rdma/shm/shm_fabric.h"

namespace gannet::rdma {

struct TestFabricOptions {
  int num_nodes = 2;
  uint64_t bytes_per_node = 0;
  bool adversarial = false;  // for shm; other fabrics cannot be configured
  uint64_t seed = 1;
};

struct TestFabric {
  std::unique_ptr<Fabric> fabric;
  std::function<void(NodeId)> kill;  // kills a node at once
  absl::Duration call_timeout = Channel::kDefaultCallTimeout;
  // Makes the fabric for another process of the same cluster, to be called in that process. Null: all nodes must be in
  // one process.
  std::function<std::unique_ptr<Fabric>()> join = nullptr;
};

// Any failure is a failed check.
using TestFabricMaker = std::function<TestFabric(const TestFabricOptions&)>;

inline TestFabric MakeShmTestFabric(const TestFabricOptions& options) {
  auto fabric = ShmFabric::InProcess({.num_nodes = options.num_nodes,
                                      .bytes_per_node = options.bytes_per_node,
                                      .adversarial = options.adversarial,
                                      .seed = options.seed});
  GANNET_CHECK(fabric.ok(), "%s", fabric.status().ToString());
  ShmFabric* raw = fabric->get();
  return {.fabric = *std::move(fabric), .kill = [raw](NodeId id) { raw->Kill(id); }};
}

// The maker used by the whole program.
inline TestFabricMaker& MakerOfTestFabrics() {
  static TestFabricMaker maker = MakeShmTestFabric;
  return maker;
}

inline TestFabric MakeTestFabric(const TestFabricOptions& options) {
  return MakerOfTestFabrics()(options);
}

}  // namespace gannet::rdma
