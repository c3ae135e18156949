// The fabric that a cluster file names.
#pragma once

#include <memory>
#include <optional>

#include "absl/time/time.h"
#include "base/status.h"
#include "cluster/config/config.h"
#include "rdma/fabric.h"
#include "rdma/verbs/verbs_fabric.h"

namespace gannet::cluster {

// Opens the fabric for a server (its id) or for a client. The process may be the first of the cluster or any later one.
// FailedPrecondition: it does not fit the running processes; the message says why. Over verbs, only attaching and
// waiting for the others find that out.
StatusOr<std::unique_ptr<rdma::Fabric>> OpenFabric(const Config& config, std::optional<int> server);

// Null if it is another kind of fabric.
const rdma::VerbsFabric* AsVerbs(const rdma::Fabric& fabric);

// Upper bound of the time that a call to another process of the cluster may take.
absl::Duration CallTimeout(const Config& config);

}  // namespace gannet::cluster
