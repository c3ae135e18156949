// NodeLocks: the right to change the tables of several nodes of one process (DatabaseState::create_mutex of each).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/thread.h"
#include "txn/database.h"
#include "txn/database_state.h"

namespace gannet::txn {

// An error of one of several nodes, with its number.
inline Status OfNode(const Database& node, const Status& wrong) {
  return Status(wrong.code(), absl::StrCat("node ", node.node_id(), ": ", wrong.message()));
}

class NodeLocks {
 public:
  explicit NodeLocks(std::span<Database* const> nodes) : nodes_(nodes.begin(), nodes.end()) {}
  ~NodeLocks() { Release(nodes_.size()); }
  NodeLocks(const NodeLocks&) = delete;
  NodeLocks& operator=(const NodeLocks&) = delete;

  // Takes all locks, or none. FailedPrecondition: a node is closed, or has other tables. Unavailable: one has died.
  // While it waits for one lock it holds no other: a node that closes keeps its lock, and waits for the others to
  // close.
  Status Take() {
    constexpr uint64_t kPauseNanos = 100'000;
    for (;; SleepForNanos(kPauseNanos)) {
      for (Database* const node : nodes_) GANNET_RETURN_IF_ERROR(Check(node->state()));
      size_t taken = 0;
      while (taken < nodes_.size() && nodes_[taken]->state().create_mutex.try_lock()) ++taken;
      held_ = taken == nodes_.size();
      if (held_) break;
      while (taken > 0) nodes_[--taken]->state().create_mutex.unlock();
    }
    for (Database* const node : nodes_) GANNET_RETURN_IF_ERROR(Check(node->state()));
    return CompareTables();
  }

 private:
  // A node that started first compares its tables with those of the others later, when it opens a session. It must not
  // do so in the middle of a change, when they differ.
  Status CompareTables() const {
    if (nodes_.size() == 1) return absl::OkStatus();
    for (Database* const node : nodes_) {
      if (!node->state().started) continue;
      const Status same = node->state().table_digests->Compare();
      if (!same.ok()) return OfNode(*node, same);
    }
    return absl::OkStatus();
  }
  Status Check(DatabaseState& state) const {
    GANNET_RETURN_IF_ERROR(state.sessions.CheckOpen());
    if (nodes_.size() == 1 || state.fabric->Alive(state.node->id())) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat("node ", state.node->id(), " is dead: change tables when all nodes run"));
  }
  void Release(size_t count) {
    if (!held_) return;
    while (count > 0) nodes_[--count]->state().create_mutex.unlock();
  }

  const std::vector<Database*> nodes_;
  bool held_ = false;
};

}  // namespace gannet::txn
