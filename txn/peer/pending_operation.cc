#include "txn/peer/pending_operation.h"

namespace gannet::txn {

bool IsUnknownOutcome(const Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

bool NodeLives(const PendingOperation& pending, const LocalNode& local) {
  return local.fabric.Alive(pending.node) && local.fabric.Alive(local.id()) &&
         (pending.connection == 0 || local.node.ConnectionTo(pending.node) == pending.connection);
}

}  // namespace gannet::txn
