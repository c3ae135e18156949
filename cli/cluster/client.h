// A client of a cluster: a process without rows, in a free client slot.
#pragma once

#include <memory>

#include "base/status.h"
#include "cli/cluster/config.h"
#include "cli/cluster/wait.h"
#include "rdma/fabric.h"
#include "tpcc/schema.h"
#include "txn/access/path_chooser.h"
#include "txn/database.h"

namespace gannet::cli {

struct ClusterClient {
  std::unique_ptr<rdma::Fabric> fabric;
  std::unique_ptr<txn::Database> database;  // goes before its fabric
  tpcc::Tables tables;                      // its copy of ITEM is still empty
  int slot = 0;
};

// Waits until all servers have loaded. ResourceExhausted if every slot is taken; FailedPrecondition says what does not
// fit to the servers.
StatusOr<ClusterClient> AttachClient(const ClusterConfig& config, txn::ReadPathPolicy read_path,
                                     const Patience& patience);

// TPC-C's workers of one client: each slot has numbers of its own (tpcc/keys.h, HISTORY).
int MostThreadsOfClient(const ClusterConfig& config);
uint32_t FirstWorkerOfSlot(const ClusterConfig& config, int slot);

// Is any client attached but this one?
bool OtherClients(const rdma::Fabric& fabric, const ClusterConfig& config, int slot);

}  // namespace gannet::cli
