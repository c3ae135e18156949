// CommitPending: the operations of a commit at other nodes that failed but must be done. They become pending operations
// of the session (pending_operations.h). After the commit point the transaction waits for them by a group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/coro/task.h"
#include "base/status.h"
#include "rdma/fabric.h"
#include "rdma/global_address.h"
#include "txn/commit/owner_links.h"
#include "txn/commit/redo.h"
#include "txn/peer/pending_operation.h"
#include "txn/session/write_set.h"

namespace gannet::txn {

// Used by the session's thread. Its group is that of one commit, up to Clear.
class CommitPending {
 public:
  // All must outlive this.
  CommitPending(SessionState* session, OwnerLinks* links, const Redo* redo)
      : session_(session), links_(*links), redo_(*redo) {}
  CommitPending(const CommitPending&) = delete;
  CommitPending& operator=(const CommitPending&) = delete;

  void OweCall(OwnerCall* call, rdma::MethodId method, std::span<const std::byte> message);
  void OweUnlock(const WriteEntry& entry);
  void OweInstall(const WriteEntry& entry);
  // A decision of several messages is noted under one name, and stays noted until the transaction's end. So the slot
  // still belongs to the transaction, or its group. `finished`: the records that `keeper` finishes.
  void OweDecision(rdma::NodeId keeper, std::span<const std::byte> message,
                   std::span<const rdma::GlobalAddress> finished);

  // The commit point has been passed: the transaction waits for the pending operations that are added from now on.
  void OpenGroup() {
    if (group_ == nullptr) group_ = std::make_shared<PendingGroup>();
  }
  bool has_group() const { return group_ != nullptr; }
  // Waits for the group's pending operations, if there is one. Ok if all was done and `first_error` is Ok; else
  // Unknown.
  coro::Task<Status> Await(Status first_error);
  // Waits for the pending operations of a decision. False: they are not settled in time, and the transaction continues
  // without them.
  coro::Task<bool> AwaitDecision();
  // The slot of the name under which decisions are noted. A decision that stays open takes the slot along.
  std::optional<uint16_t>* decision_slot() { return &decision_slot_; }

  void Clear() { group_ = nullptr; }

 private:
  std::shared_ptr<PendingOperation> PendingOfCall(rdma::NodeId node, rdma::MethodId method, uint16_t slot,
                                                  std::span<const std::byte> message);
  // `next`: what the record's state word becomes.
  std::shared_ptr<PendingOperation> PendingOfRecord(PendingOperation::Kind kind, const WriteEntry& entry,
                                                    uint64_t next);
  uint64_t Deadline() const;
  void LeaveSlot();

  SessionState* const session_;
  OwnerLinks& links_;
  const Redo& redo_;
  std::shared_ptr<PendingGroup> group_;  // null: no pending operation after the commit point
  std::optional<uint16_t> decision_slot_;
};

}  // namespace gannet::txn
