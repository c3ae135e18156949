// The fabric that a cluster file names.
#pragma once

#include <memory>
#include <optional>

#include "cli/cluster/config.h"
#include "rdma/base/status.h"
#include "rdma/fabric.h"

namespace gannet::cli {

// For a server (its id) or a client. The process need not be the first of the cluster, nor the last. FailedPrecondition
// says why this process does not fit to those that run.
StatusOr<std::unique_ptr<rdma::Fabric>> OpenFabric(const ClusterConfig& config, std::optional<int> server);

}  // namespace gannet::cli
