// The skeleton of a change for which the transactions that use a table have to end:
//
//   hold      under the locks: accesses that begin now are refused, or meet a conflict
//   await     without the locks, because a transaction that this waits for may create a table: the end of all
//             transactions that began before, on every node, and of what they still owe to other nodes
//   apply     under the locks again: nobody else uses the table
//   release   in any case
//
// A transaction is inside the epoch from its begin to its end, and a grace period is one of all nodes. A step that
// comes too late is refused: it loads Table::state inside the epoch, as a reader loads a link to a block that may be
// retired (rdma/epoch.h).
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "txn/schema/nodes.h"

namespace gannet::txn {

// Calls hold() under the locks until it returns true: false means that a walk or a load of the table is in progress.
Status Hold(Nodes nodes, absl::FunctionRef<StatusOr<bool>()> hold);

// Keeps checkpoints' walks and loads away from a table, on all nodes or none (UnsavedLoads::TryHold). False: one is in
// progress.
bool TryHoldLoads(Nodes nodes, TableId table);
void ReleaseLoads(Nodes nodes, TableId table);

enum class Awaits : uint8_t { kTransactions, kTheirPendingToo };
// Awaits, applies and releases; returns the result of apply(), or why it was not called. `not_done`: "table 'x' was not
// widened". release() is called with that result, under the locks if they could be taken.
Status ApplyAlone(Nodes nodes, absl::string_view not_done, Awaits awaits, absl::FunctionRef<Status()> apply,
                  absl::FunctionRef<void(const Status&)> release);

// Waits until all transactions that had begun before this call have ended, on all nodes. DeadlineExceeded begins with
// `not_done`. Cancelled by DatabaseOptions::stop.
Status AwaitOlderTransactions(DatabaseState& node, absl::Duration wait, absl::string_view not_done);

}  // namespace gannet::txn
