// The fabric that a cluster file names.
#pragma once

#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "base/status.h"
#include "cli/cluster/config.h"
#include "rdma/fabric.h"
#include "rdma/verbs/verbs_fabric.h"

namespace gannet::cli {

// For a server (its id) or a client. The process need not be the first of the cluster, nor the last. FailedPrecondition
// says why this process does not fit to those that run; over verbs only attaching, and waiting for the others, tell.
StatusOr<std::unique_ptr<rdma::Fabric>> OpenFabric(const ClusterConfig& config, std::optional<int> server);

// Null if it is another kind of fabric.
const rdma::VerbsFabric* AsVerbs(const rdma::Fabric& fabric);

// How long a call to another process of the cluster may take.
absl::Duration CallTimeout(const ClusterConfig& config);

}  // namespace gannet::cli
