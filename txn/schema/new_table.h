// Tables of one node that are new to it: made by CreateTable, found in the directory, or taken over by a program that
// creates what the directory has.
//
// The caller of each function has NodeLocks, or is Database::Open.
#pragma once

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "base/status.h"
#include "txn/durable/catalog.h"
#include "txn/schema/nodes.h"
#include "txn/store/secondary_index.h"
#include "txn/store/table.h"

namespace gannet::txn {

// Ok if tables of these nodes may be created, renamed or dropped now; `instead`: advice for when they may not.
Status CheckChangeable(Nodes nodes, absl::string_view instead);
// The table of this name on each node, for a change after Start. `what`: "DropTable".
StatusOr<std::vector<Table*>> ChangeableTables(Nodes nodes, std::string_view name, absl::string_view what,
                                               absl::string_view instead);

// Makes a table with the next number on each node, durably if the database has started. `complete`: by
// CompleteOptions. `prepare` is called with the table of each node before it gets its index. After an error no node has
// the table, but a manifest may.
StatusOr<std::vector<Table*>> MakeTables(
    Nodes nodes, const TableOptions& complete,
    absl::FunctionRef<void(size_t node, Table*)> prepare = [](size_t, Table*) {});
// The program creates a table that the directory has, with these options. They differ: InvalidArgument names what.
Status TakeOver(DatabaseState& node, Table* table, const TableOptions& asked, TableOptions complete);
// Gives the table its index, which is empty.
Status MakeIndex(DatabaseState& node, Table* table);
// The name of an index of the table, complete or not; empty: there is none.
std::string NameOfAnIndexOf(const DatabaseState& node, const Table& table);

// The tables that a directory has (txn/durable/catalog.h), and their indexes, whose size follows from
// TableOptions::expected_rows, which the program may change until Start.
Status AdoptTables(DatabaseState& node, const Catalog& catalog);
Status MakeIndexes(DatabaseState& node);

}  // namespace gannet::txn
