// Secondary indexes as the schema sees them: whether transactions keep one, and whether it is complete.
#pragma once

#include "absl/strings/string_view.h"
#include "base/status.h"
#include "txn/schema/nodes.h"
#include "txn/store/secondary_index.h"
#include "txn/store/table.h"

namespace gannet::txn {

// Begins or ends the keeping of an index by all who write rows of `table`. The caller has NodeLocks, or is
// Database::Open.
void SetKept(DatabaseState& node, Table* table, const SecondaryIndex* index, bool kept);
// SetKept on all these nodes, under their locks. `entries`: the index's table on each node. Commits do not keep it on
// some nodes only (SecondaryIndex::is_being_published).
Status SetKeptOnAll(Nodes nodes, Tables entries, bool kept);
// Notes in the manifests of these nodes whether the index is complete. `why`: "is made", for errors.
Status NoteIndex(Nodes nodes, Tables entries, bool complete, absl::string_view why);
// Called after an error. The index may be built, or dropped, again.
void AllowBuild(Nodes nodes, Tables entries);

}  // namespace gannet::txn
