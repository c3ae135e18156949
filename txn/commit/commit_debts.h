// CommitDebts: the operations of a commit at other nodes that failed but must be done. They become debts of the session
// (debts.h). After the commit point the transaction waits for them by a ticket.
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
#include "txn/peer/debt.h"
#include "txn/session/write_set.h"

namespace gannet::txn {

// Used by the session's thread. Its ticket is that of one commit, up to Clear.
class CommitDebts {
 public:
  // All must outlive this.
  CommitDebts(SessionState* session, OwnerLinks* links, const Redo* redo)
      : session_(session), links_(*links), redo_(*redo) {}
  CommitDebts(const CommitDebts&) = delete;
  CommitDebts& operator=(const CommitDebts&) = delete;

  void OweCall(OwnerCall* call, rdma::MethodId method, std::span<const std::byte> message);
  void OweUnlock(const WriteEntry& entry);
  void OweInstall(const WriteEntry& entry);
  // A decision of several messages is noted under one name, and stays noted until the transaction's end. So the slot
  // still belongs to the transaction, or its ticket. `finished`: the records that `keeper` finishes.
  void OweDecision(rdma::NodeId keeper, std::span<const std::byte> message,
                   std::span<const rdma::GlobalAddress> finished);

  // The commit point has been passed: the transaction waits for the debts that are added from now on.
  void OpenTicket() {
    if (ticket_ == nullptr) ticket_ = std::make_shared<DebtTicket>();
  }
  bool has_ticket() const { return ticket_ != nullptr; }
  // Waits for the ticket's debts, if there is one. Ok if all was done and `first_error` is Ok; else Unknown.
  coro::Task<Status> Await(Status first_error);
  // Waits for the debts of a decision. False: they are not settled in time, and the transaction continues without them.
  coro::Task<bool> AwaitDecision();
  // The slot of the name under which decisions are noted. A decision that stays open takes the slot along.
  std::optional<uint16_t>* decision_slot() { return &decision_slot_; }

  void Clear() { ticket_ = nullptr; }

 private:
  std::shared_ptr<Debt> DebtOfCall(rdma::NodeId node, rdma::MethodId method, uint16_t slot,
                                   std::span<const std::byte> message);
  // `next`: what the record's state word becomes.
  std::shared_ptr<Debt> DebtOfRecord(Debt::Kind kind, const WriteEntry& entry, uint64_t next);
  uint64_t Deadline() const;
  void LeaveSlot();

  SessionState* const session_;
  OwnerLinks& links_;
  const Redo& redo_;
  std::shared_ptr<DebtTicket> ticket_;  // null: no debt after the commit point
  std::optional<uint16_t> decision_slot_;
};

}  // namespace gannet::txn
