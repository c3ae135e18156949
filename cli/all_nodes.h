// The nodes of a cluster within this process start and close together: each waits for the others, so each needs a
// thread.
#pragma once

#include <span>

#include "base/status.h"
#include "txn/database.h"

namespace gannet::cli {

// Runs work(database) for all at once; the first error, if there is one.
Status OnAllNodes(std::span<txn::Database* const> databases, Status (*work)(txn::Database&));

}  // namespace gannet::cli
