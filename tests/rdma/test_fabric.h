// The fabric under the clusters of tests. Shared memory, unless the program's main says otherwise before any test runs:
// that is how the same tests run on real verbs.
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
  bool adversarial = false;  // as shm has it; other fabrics are as adversarial as they are
  uint64_t seed = 1;
};

struct TestFabric {
  std::unique_ptr<Fabric> fabric;
  std::function<void(NodeId)> kill;  // a node dies on the spot
  absl::Duration call_timeout = Channel::kDefaultCallTimeout;
  // The fabric for another process of the same cluster, to be called there. Null: all nodes are to be in this one.
  std::function<std::unique_ptr<Fabric>()> join = nullptr;
};

// Any failure is a check.
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

// Of the whole program.
inline TestFabricMaker& MakerOfTestFabrics() {
  static TestFabricMaker maker = MakeShmTestFabric;
  return maker;
}

inline TestFabric MakeTestFabric(const TestFabricOptions& options) {
  return MakerOfTestFabrics()(options);
}

}  // namespace gannet::rdma
