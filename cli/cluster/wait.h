// Waiting for the servers of a cluster, so that it does not matter who is started first.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "absl/time/time.h"
#include "cli/cluster/config.h"
#include "rdma/base/status.h"
#include "rdma/fabric.h"
#include "txn/database.h"

namespace gannet::cli {

struct Patience {
  absl::Duration at_most;
  const std::atomic<bool>* stop;                 // the user asked to end
  std::function<void(const std::string&)> note;  // told when what is waited for changes
};

// Those whose processes are not there: "server 1 (beta), server 2 (gamma)". Empty if all are.
std::string MissingServers(const rdma::Fabric& fabric, const ClusterConfig& config);

// DeadlineExceeded names who is missing; Cancelled if it was told to stop.
Status WaitUntilAttached(const rdma::Fabric& fabric, const ClusterConfig& config, const Patience& patience);

// All servers have their data, and agree with this process.
Status WaitUntilReady(txn::Session& session, const ClusterConfig& config, const Patience& patience);

}  // namespace gannet::cli
