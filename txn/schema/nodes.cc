#include "txn/schema/nodes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/thread.h"

namespace gannet::txn {

StatusOr<std::vector<DatabaseState*>> InOrder(Nodes nodes) {
  const auto wrong = [](auto&&... what) {
    return absl::InvalidArgumentError(absl::StrCat("the tables of all nodes are changed together: ", what...));
  };
  std::vector<DatabaseState*> ordered(nodes.begin(), nodes.end());
  if (ordered.empty() || std::ranges::find(ordered, nullptr) != ordered.end()) {
    return wrong("give the database of every node");
  }
  std::ranges::sort(ordered, {}, [](const DatabaseState* node) { return node->node->id(); });
  const rdma::Fabric* const fabric = ordered.front()->fabric;
  for (size_t i = 0; i < ordered.size(); ++i) {
    if (ordered[i]->fabric != fabric) return wrong("these databases are of several fabrics");
    if (ordered[i]->node->id() != i) return wrong("node ", i, " is missing, or another one is there twice");
    if (!ordered[i]->started) {
      return absl::FailedPreconditionError(
          absl::StrCat("call Database::Start of node ", i, " before its tables change"));
    }
  }
  const int of_fabric = fabric->num_nodes();
  if (std::ssize(ordered) != of_fabric) return wrong("the fabric has ", of_fabric, " nodes, not ", ordered.size());
  return ordered;
}

Status OfNode(Nodes nodes, const DatabaseState& node, const Status& wrong) {
  if (wrong.ok() || nodes.size() == 1) return wrong;
  return Status(wrong.code(), absl::StrCat("node ", node.node->id(), ": ", wrong.message()));
}

NodeLocks::~NodeLocks() {
  if (held_) Release(nodes_.size());
}

Status NodeLocks::Take() {
  constexpr uint64_t kPauseNanos = 100'000;
  for (;; SleepForNanos(kPauseNanos)) {
    for (DatabaseState* const node : nodes_) GANNET_RETURN_IF_ERROR(Check(*node));
    size_t taken = 0;
    while (taken < nodes_.size() && nodes_[taken]->create_mutex.try_lock()) ++taken;
    held_ = taken == nodes_.size();
    if (held_) break;
    Release(taken);
  }
  for (DatabaseState* const node : nodes_) GANNET_RETURN_IF_ERROR(Check(*node));
  return CompareTables();
}

// A node that started first compares its tables with those of the others later, when it opens a session. It must not do
// so in the middle of a change, when they differ.
Status NodeLocks::CompareTables() const {
  if (nodes_.size() == 1) return absl::OkStatus();
  for (DatabaseState* const node : nodes_) {
    if (node->started) GANNET_RETURN_IF_ERROR(OfNode(nodes_, *node, node->table_digests->Compare()));
  }
  return absl::OkStatus();
}

Status NodeLocks::Check(const DatabaseState& node) const {
  GANNET_RETURN_IF_ERROR(node.sessions.CheckOpen());
  if (nodes_.size() == 1 || node.fabric->Alive(node.node->id())) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("node ", node.node->id(), " is dead: change tables when all nodes run"));
}

void NodeLocks::Release(size_t count) {
  while (count > 0) nodes_[--count]->create_mutex.unlock();
}

}  // namespace gannet::txn
