// The nodes of a cluster within one process. They start, take checkpoints and close together: each waits for the
// others. And they create, rename, widen and drop tables, and make secondary indexes, together while transactions run,
// which a cluster of several processes cannot do.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "txn/database.h"

namespace gannet::txn {

// Calls work(database) for all databases at once, each on its own thread. Waits for all, and returns the first error,
// if there is one.
Status OnAllNodes(std::span<Database* const> databases, Status (*work)(Database&));

// Changes of the tables of all nodes, after Database::Start of each. `databases`: those of all nodes of one fabric,
// each once. Durable and atomic, as with one node: after a crash all nodes have the tables before the change, or all
// have those after it. If the manifest of a node cannot be written, the error has its number, and the change is taken
// back on all nodes; where no disk allows that, the directory may have either. InvalidArgument: a node is missing.
// FailedPrecondition: one was not started, or is closed. Unavailable: one is dead. Thread-safe.

// Creates a table on all nodes, with the same number; otherwise like Database::CreateTable. Each node's
// Database::FindTable finds its part afterwards.
Status CreateTableOnAllNodes(std::span<Database* const> databases, const TableOptions& options);

// Renames a table on all nodes; otherwise like Database::RenameTable.
Status RenameTableOnAllNodes(std::span<Database* const> databases, std::string_view from, const std::string& to);

// Drops a table on all nodes; otherwise like Database::DropTable. DeadlineExceeded, too: for durable_within another
// node could not be told how a transaction that changed the table ended; that is tried until it succeeds, so drop the
// table again. The table is then as before. If manifests could not be written, and the change could not be taken back
// either, the table is dropped nevertheless, and the error says so.
Status DropTableOnAllNodes(std::span<Database* const> databases, std::string_view name);

// Makes room in the rows of a table on all nodes; otherwise like Database::WidenTable. For a table of
// variable_length, too, the call waits for older transactions, but no access meets a conflict because of it.
// DeadlineExceeded, too: as for DropTableOnAllNodes. ResourceExhausted has the number of the node that has no memory
// for its larger rows.
Status WidenTableOnAllNodes(std::span<Database* const> databases, std::string_view name, size_t payload_bytes);

// Makes a secondary index on all nodes, from the rows that all have, while transactions of all run; otherwise like
// Database::CreateIndex of one node. Each node's Database::FindIndex finds it afterwards. A node that dies meanwhile
// ends it: Unavailable. No node closes meanwhile. With DurabilityMode::kNone nothing else may run on any node.
Status CreateIndexOnAllNodes(std::span<Database* const> databases, const SecondaryIndexOptions& options);

}  // namespace gannet::txn
