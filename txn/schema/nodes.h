// The nodes whose tables change together, and the right to change them.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "txn/run/database_state.h"
#include "txn/store/table.h"

namespace gannet::txn {

// All nodes of one fabric, by number; or one node.
using Nodes = std::span<DatabaseState* const>;
// One table, as each of the nodes has it.
using Tables = std::span<Table* const>;

// All nodes of a fabric, by number, from nodes in any order. InvalidArgument: one is missing, or is there twice, or
// belongs to another fabric. FailedPrecondition: one was not started.
StatusOr<std::vector<DatabaseState*>> InOrder(Nodes nodes);

// An error of one node; of several nodes it gets the node's number.
Status OfNode(Nodes nodes, const DatabaseState& node, const Status& wrong);

// The right to change the tables of nodes (DatabaseState::create_mutex of each). The nodes outlive it.
class NodeLocks {
 public:
  explicit NodeLocks(Nodes nodes) : nodes_(nodes) {}
  ~NodeLocks();
  NodeLocks(const NodeLocks&) = delete;
  NodeLocks& operator=(const NodeLocks&) = delete;

  // Takes all locks, or none. FailedPrecondition: a node is closed, or has other tables, or its process was forked.
  // Unavailable: one of several has died. While it waits for one lock it holds no other: a node that closes keeps its
  // lock, and waits for the others to close.
  Status Take();

 private:
  Status CompareTables() const;
  Status Check(const DatabaseState& node) const;
  void Release(size_t count);

  const Nodes nodes_;
  bool held_ = false;
};

}  // namespace gannet::txn
