// Addresses for a verbs cluster whose nodes are all on this machine.
#pragma once

#include "rdma/verbs/verbs_fabric.h"

namespace gannet::rdma::conformance {

// Options of a cluster on this machine's first RDMA device, each time with other ports, and with patience: in an
// emulated machine on a busy host anything may stand still for seconds. Stops the program if there is no device.
VerbsOptions LocalVerbsCluster(int num_nodes, uint64_t bytes_per_node);

}  // namespace gannet::rdma::conformance
