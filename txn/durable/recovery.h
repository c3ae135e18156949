// Recovery: from a data directory to tables in memory.
//
//   1. the manifest: tables, checkpoints
//   2. the logs of all nodes, in parallel: the epoch that all of them recover, the decisions of transactions of several
//      nodes, and of every key of this node the newest change
//   3. per table: newest checkpoint and changes merged; records made, the index filled in bulk (ordered kinds) or in
//      parallel (hash kinds). XStore models are trained when the first client asks, as ever.
//   4. if files of the newest checkpoint are damaged: 2 and 3 for their tables, with the checkpoint before. Nothing is
//      lost then: the log is kept back to where that one began. Not if something changed past the log between the two.
//
// The memory that it needs beside the tables: the newest change of every key in the log that the checkpoint leaves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "log/checkpoint.h"
#include "log/file/file_system.h"
#include "log/log.h"
#include "log/log_reader.h"
#include "txn/database.h"
#include "txn/durable/data_directory.h"

namespace gannet::txn {

struct DatabaseState;

// Everything that `state`'s tables had, as of the greatest epoch that all nodes' logs have closed. *end: where this
// node's log goes on. The tables are empty and nobody uses them yet. DataLoss if what a manifest of any node says is
// not there. Cancelled soon after *state.options.stop has become true.
Status Recover(DatabaseState& state, log::FileSystem& files, const std::string& directory, log::LogEnd* end,
               RecoveryReport* report);

}  // namespace gannet::txn
