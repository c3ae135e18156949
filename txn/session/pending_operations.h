// Pending operations: operations at other nodes that a session's transactions still have to complete, because a verb or
// call failed although the node is alive.
//
// An error does not tell whether the operation took effect (fabric.h, 5). A verb has no effect after it has completed,
// but a call may: a call that timed out may be served later. So each pending operation is an operation that can be
// repeated until an answer says that it is done, and that does no harm if it was done before:
//
//   unlock    A CAS of the word from locked-by-us to its value before the lock. For a lock that was requested, or
//             released, with unknown outcome. If the CAS finds anything else, we do not hold the lock.
//   install   After the commit point. READ the word: if it is still locked by us at the version read, repeat the WRITEs
//             of the record; else they have been done. (A transaction that locks the record after the install locks a
//             later version.)
//   call      kTxnFinish or kTxnDecide, which its number makes repeatable (request_ledger.h); or kTxnCancel of a
//             kTxnPrepare of unknown outcome, after which that prepare is undone, or never will be carried out. The
//             caller's slot belongs to the pending operation until it is settled, so that numbers do not overtake each
//             other. The slot of a kTxnDecide stays with the transaction, or its group: the decision is noted under it
//             until the caller's next one. An owner that has lost this node, and did not learn of the decision, asks
//             the others for it. So then no other decision takes the slot before that owner lets this node join again.
//
// A locked word names the worker, not its transaction. So "locked by us, at version v" may be the lock of another
// transaction of the same session, which an unlock must not release. Two rules for each record prevent that:
//
//   (a) While there is a pending operation for it, no transaction of the session asks for the record's lock: that is a
//       conflict (Covers).
//   (b) An unlock waits while a transaction that asked for the lock earlier, or an install or call, may hold the lock.
//
// So when the CAS of an unlock begins, nothing else in this session holds the lock, and nothing else can get it until
// the CAS has completed. Two unlocks of one record may run at the same time: both have the same effect.
//
// A session notes its pending operations here; a thread of the database settles them (pending_completer.h). So the
// record of a pending operation is free soon after its node can be reached again, also if the session is idle, only
// reads, or is closed. Three rules divide the work:
//
//   - An unlock goes to the completer when no transaction of the session may hold the lock any more (rule b). All other
//     pending operations go there at once, and so before an unlock of the same record, which waits for them there.
//   - From then on the session reads only the pending operation's outcome, and the completer writes only that.
//   - Until the session has seen the outcome, it does not ask for the lock (rule a).
//
// Transactions of this and other nodes find the record of a pending operation locked: a conflict, repeated after a
// while. A pending operation is dropped when its node is dead, or was lost and is back over another connection: that
// node has then repaired what this one left there, as if this one had died (peers.h). The open pending operations of a
// session that is closed pass to the next session with the same channel, and so the same owner bits: rule (a), and the
// names of callers that are in use, hold for that one, too.
//
// Pending operations belong to the session's thread. They cost nothing while there are none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/coro/task.h"
#include "rdma/global_address.h"
#include "txn/peer/pending_operation.h"

namespace gannet::txn {

struct SessionState;

class PendingOperations {
 public:
  explicit PendingOperations(SessionState* session) : session_(session) {}
  PendingOperations(const PendingOperations&) = delete;
  PendingOperations& operator=(const PendingOperations&) = delete;

  // True if all that were settled are forgotten, and there is no other.
  bool empty() const { return pending_.empty(); }
  // True if Leave has something to pass.
  bool leaves_any() const { return !pending_.empty() || !noted_.empty(); }
  // True if there is a pending operation for `record`: rule (a).
  bool Covers(rdma::GlobalAddress record) const;

  // If the pending operation's node is dead, the pending operation is dropped at once and its group is lost.
  void Add(std::shared_ptr<PendingOperation> pending);
  // Forgets those that are settled. Call it before Covers.
  void Forget();
  // A transaction of the session has released its locks, or owes their release.
  void NoteRelease() {
    if (held_back_ > 0) [[unlikely]]
      HandOver();
  }
  // Waits until the group's pending operations are settled, at most until `deadline_nanos`. True if everything was
  // done.
  coro::Task<bool> Await(std::shared_ptr<PendingGroup> group, uint64_t deadline_nanos);

  // Slots for the names of this session's callers: owner bits | slot.
  uint16_t TakeSlot();
  void ReturnSlot(uint16_t slot) { free_slots_.push_back(slot); }
  // The slot is that of a decision of the group's transaction, which must stay noted while an owner may need it.
  void KeepNoted(PendingGroup* group, uint16_t slot);

  // These pass the pending operations to the session that takes this session's place. None of its transactions is open.
  std::vector<std::shared_ptr<PendingOperation>> Leave();
  void TakeOver(std::vector<std::shared_ptr<PendingOperation>> left);

 private:
  // Gives the completer those that may go there.
  void HandOver();
  // Rule (b), for the session's own transactions.
  bool MustWait(const PendingOperation& pending) const;
  void Close(PendingOperation& pending, bool lost);
  // None of the group's pending operations is open.
  void ReturnSlots(PendingGroup* group);

  // The slot of a decision that the owners at the other ends of these links may ask for.
  struct NotedSlot {
    uint16_t slot;
    std::vector<Link> links;
  };

  SessionState* session_;
  std::vector<std::shared_ptr<PendingOperation>> pending_;  // the open ones, the oldest first
  size_t held_back_ = 0;
  std::vector<NotedSlot> noted_;
  std::vector<uint16_t> free_slots_;
  uint16_t next_slot_ = 0;
};

}  // namespace gannet::txn
