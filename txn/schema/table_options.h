// Checks of what a program asks of a table. InvalidArgument names the table and the wrong option.
#pragma once

#include <string>

#include "base/status.h"
#include "txn/store/table.h"

namespace gannet::txn {

Status CheckTableName(const std::string& name);
Status CheckTable(const TableOptions& options, int data_nodes);
// Does what CheckTable does, for a table that a program makes: it must say which node owns which key.
Status CheckNewTable(const TableOptions& options, int data_nodes);
// The options of a new table, with all that has a default.
StatusOr<TableOptions> CompleteOptions(TableOptions options);

}  // namespace gannet::txn
