// The fabric of tests whose nodes are processes. It uses a shared memory file, unless the program's main chooses
// another fabric before any test runs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "base/check.h"
#include "rdma/shm/shm_fabric.h"

namespace gannet::rdma {

struct SharedFabricOptions {
  std::string path;  // of the memory file, if there is one; the same in all processes
  int servers = 1;   // nodes 0 to servers - 1
  int clients = 0;   // the other nodes: processes that come and go
  uint64_t bytes_per_node = 0;
  bool adversarial = false;  // for shared memory; NICs cannot be configured
  // This process gives up a node that is silent for ImpatientLimit; the others wait much longer.
  bool impatient = false;
};

// Zero: a living node is never given up for being silent.
inline absl::Duration& ImpatientLimit() {
  static absl::Duration limit = absl::ZeroDuration();
  return limit;
}

struct SharedFabric {
  std::unique_ptr<Fabric> fabric;
  absl::Duration call_timeout = Channel::kDefaultCallTimeout;
};

// Makes one process's access. Any failure is a failed check.
using SharedFabricMaker = std::function<SharedFabric(const SharedFabricOptions&)>;

inline SharedFabric MakeSharedShmFabric(const SharedFabricOptions& options) {
  auto fabric = ShmFabric::Share(options.path, {.num_nodes = options.servers + options.clients,
                                                .bytes_per_node = options.bytes_per_node,
                                                .adversarial = options.adversarial});
  GANNET_CHECK(fabric.ok(), "%s", fabric.status().ToString());
  return {*std::move(fabric)};
}

// The maker used by the whole program.
inline SharedFabricMaker& MakerOfSharedFabrics() {
  static SharedFabricMaker maker = MakeSharedShmFabric;
  return maker;
}

}  // namespace gannet::rdma
