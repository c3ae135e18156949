// Recovery: from a data directory to tables in memory.
//
//   1. the manifest: tables, checkpoints
//   2. the logs of all nodes, in parallel: the epoch that all of them recover, the decisions of transactions of several
//      nodes, and the newest change of every key of this node, in a record (latest_changes.h)
//   3. newest checkpoint and changes merged; records made of the checkpoint's rows, the indexes filled, in bulk
//      (ordered kinds) or in parallel (hash kinds; table_rebuilder.h). XStore models are trained when the first client
//      asks, as always.
//   4. if files of the newest checkpoint are damaged: 2 and 3 for their tables, with the previous checkpoint. Nothing
//      is lost then, because the log is kept back to where that one began. Impossible if something between the two
//      changed without being logged.
//
// Memory that it needs in addition to the tables: about 60 bytes for every key in the log, and 24 to 48 for every key
// of an ordered table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "log/file/file_system.h"
#include "log/log.h"
#include "log/segment/log_reader.h"
#include "txn/durable/data_directory.h"
#include "txn/store/options.h"
#include "txn/store/statistics.h"

namespace gannet::txn {

struct LocalNode;

// Restores everything that the tables of `local` had at the greatest epoch that all nodes' logs have closed. `nodes`:
// of ReadDataDirectory. *end: where this node's log continues. The tables must be empty and not in use. DataLoss if
// something that a manifest of any node lists is not there. Cancelled soon after its DatabaseOptions::stop has become
// true.
Status Recover(const LocalNode& local, log::FileSystem& files, const std::string& directory,
               const std::vector<NodeData>& nodes, log::LogEnd* end, RecoveryReport* report);

}  // namespace gannet::txn
