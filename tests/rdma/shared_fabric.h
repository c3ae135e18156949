// The fabric of tests whose nodes are processes. Over a shared memory file, unless the program's main says otherwise
// before any test runs.
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
  std::string path;  // of the memory file, if there is one; all processes say the same
  int servers = 1;   // nodes 0 to servers - 1
  int clients = 0;   // the others: processes that come and go
  uint64_t bytes_per_node = 0;
  bool adversarial = false;  // of shared memory; a NIC is what it is
  // This process gives up who is silent for ImpatientLimit, the others have far more patience.
  bool impatient = false;
};

// Zero: nobody who lives is given up for being silent.
inline absl::Duration& ImpatientLimit() {
  static absl::Duration limit = absl::ZeroDuration();
  return limit;
}

struct SharedFabric {
  std::unique_ptr<Fabric> fabric;
  absl::Duration call_timeout = Channel::kDefaultCallTimeout;
};

// One process's access. Any failure is a check.
using SharedFabricMaker = std::function<SharedFabric(const SharedFabricOptions&)>;

inline SharedFabric MakeSharedShmFabric(const SharedFabricOptions& options) {
  auto fabric = ShmFabric::Share(options.path, {.num_nodes = options.servers + options.clients,
                                                .bytes_per_node = options.bytes_per_node,
                                                .adversarial = options.adversarial});
  GANNET_CHECK(fabric.ok(), "%s", fabric.status().ToString());
  return {*std::move(fabric)};
}

// Of the whole program.
inline SharedFabricMaker& MakerOfSharedFabrics() {
  static SharedFabricMaker maker = MakeSharedShmFabric;
  return maker;
}

}  // namespace gannet::rdma
