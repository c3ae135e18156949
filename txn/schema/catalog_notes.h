// What the manifests of the nodes say of their tables: it changes on all nodes in the same way, and durably.
//
// The commit point of a change on several nodes is the first manifest that has the new generation, which is greater
// than every generation that a manifest may have (durable/catalog.h). If a later manifest cannot be written, the tables
// are written again as they were, as the generation after that one: one manifest that has it takes the change back.
//
// The caller of each function has NodeLocks.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "base/status.h"
#include "txn/durable/catalog.h"
#include "txn/schema/nodes.h"

namespace gannet::txn {

// The tables as the node has them now.
Catalog DescribeCatalog(const DatabaseState& node);
// Writes the manifests of all nodes, with what `edit` makes of the present tables. `what`: "a table is renamed". After
// an error, the present tables are written again, where that is possible; otherwise *may_be_noted (if not null) becomes
// true.
Status NoteOn(Nodes nodes, absl::string_view what, absl::FunctionRef<void(Catalog*)> edit,
              bool* may_be_noted = nullptr);
// NoteOn for a change of one table, whose description `edit` changes.
Status NoteTableOn(Nodes nodes, absl::string_view what, TableId table,
                   absl::FunctionRef<void(log::TableDescription*)> edit);
// Writes the present tables as the newest. True: a manifest has them.
bool TakeBackOn(Nodes nodes);
// Tells the other nodes' sessions, which compare them, the present tables.
void PublishOn(Nodes nodes);

}  // namespace gannet::txn
