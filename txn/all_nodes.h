// The nodes of a cluster within one process. They start, take checkpoints and close together: each waits for the
// others.
#pragma once

#include <span>

#include "base/status.h"
#include "txn/database.h"

namespace gannet::txn {

// Calls work(database) for all databases at once, each on its own thread. Waits for all, and returns the first error,
// if there is one.
Status OnAllNodes(std::span<Database* const> databases, Status (*work)(Database&));

}  // namespace gannet::txn
