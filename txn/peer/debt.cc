#include "txn/peer/debt.h"

namespace gannet::txn {

bool IsUnknownOutcome(const Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

bool NodeLives(const Debt& debt, const LocalNode& local) {
  return local.fabric.Alive(debt.node) && local.fabric.Alive(local.id()) &&
         (debt.connection == 0 || local.node.ConnectionTo(debt.node) == debt.connection);
}

}  // namespace gannet::txn
