// Addresses for a verbs cluster whose nodes are all on this machine.
#pragma once

#include "rdma/verbs/verbs_fabric.h"

namespace gannet::rdma::conformance {

// Options of a cluster on this machine's first RDMA device, with other ports in each call, and with long time limits: a
// virtual machine on a busy host may stand still for seconds. Stops the program if there is no device.
VerbsOptions LocalVerbsCluster(int num_nodes, uint64_t bytes_per_node);

}  // namespace gannet::rdma::conformance
