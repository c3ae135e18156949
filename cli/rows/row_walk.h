// All rows of one node's part of a table, of a database that no other thread changes.
#pragma once

#include <string_view>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "index/key.h"
#include "txn/database.h"

namespace gannet::cli {

// Calls `visit` for each row, in the order of the keys if the index keeps one, until it returns false or an error. The
// views are valid during the call. No transaction may be at work.
Status WalkRows(txn::Database& database, const txn::Table& table,
                absl::FunctionRef<StatusOr<bool>(const index::Key& key, std::string_view payload)> visit);

}  // namespace gannet::cli
