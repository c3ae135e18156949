// Checks of the table and the key of a request.
#pragma once

#include "base/status.h"
#include "index/key.h"
#include "txn/node/local_node.h"
#include "txn/store/key_status.h"
#include "txn/store/table.h"

namespace gannet::txn {

[[gnu::cold]] Status NotOwnTable(const Table& table);
[[gnu::cold]] Status CheckUnusualRow(const LocalNode& local, const Table& table, const index::Key& key);
// InvalidArgument: the table is none of this node's database. FailedPrecondition: that of CheckState, for one that was
// dropped. CheckKey does not ask.
inline Status CheckOwnTable(const LocalNode& local, const Table& table) {
  if (local.TableById(table.id()) == &table) [[likely]]
    return absl::OkStatus();
  return NotOwnTable(table);
}
// CheckOwnTable and CheckKey, without a call for nearly all keys.
inline Status CheckRow(const LocalNode& local, const Table& table, const index::Key& key) {
  if (local.TableById(table.id()) == &table && IsKeyOf(table, key) && !table.checks_more()) [[likely]] {
    return absl::OkStatus();
  }
  return CheckUnusualRow(local, table, key);
}

}  // namespace gannet::txn
