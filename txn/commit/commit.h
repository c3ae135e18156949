// Commit: commits or validates a transaction, from its first lock to the last install.
//
// It takes the read set and the write buffer, and runs the steps of the protocol, each of which is the purpose of a
// part that has its own state and scratch:
//
//   local_writes.h       records of this node, by its CPU
//   remote_writes.h      records of other nodes: locks, installs, releases
//   one_sided_inserts.h  inserts at other nodes by verbs
//   prepare_calls.h      inserts at other nodes by calls, and records that move there
//   validation.h         whether what was read is unchanged
//   redo.h               the log: room in its buffer, the epoch, the changes
//   decision.h           several changes at other nodes: what survivors of this node need
//   commit_pending.h       what failed at other nodes but must be done
//   owner_links.h        connections and calls to other nodes
//   duplicate_key.h      the insert that met a record
//
// Belongs to the transaction, which uses it for one commit after the other: the parts keep their memory, so that a
// commit allocates nothing. The state of a commit stays until Clear, because its epoch says what its result waits for,
// and because pending operations ask whether it may hold a lock.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/coro/async.h"
#include "base/coro/task.h"
#include "base/status.h"
#include "rdma/fabric.h"
#include "txn/access/access.h"
#include "txn/commit/commit_pending.h"
#include "txn/commit/decision.h"
#include "txn/commit/duplicate_key.h"
#include "txn/commit/local_writes.h"
#include "txn/commit/one_sided_inserts.h"
#include "txn/commit/owner_links.h"
#include "txn/commit/prepare_calls.h"
#include "txn/commit/redo.h"
#include "txn/commit/remote_writes.h"
#include "txn/commit/validation.h"
#include "txn/peer/precedence_claim.h"
#include "txn/session/session_state.h"

namespace gannet::txn {

// Used by the session's thread.
class Commit {
 public:
  // Both must outlive this.
  Commit(SessionState* session, Access* access)
      : session_(session),
        reads_(access->reads()),
        writes_(access->writes()),
        links_(session, &writes_),
        redo_(session, &reads_, &writes_, &links_),
        pending_(session, &links_, &redo_),
        duplicate_(session, &reads_, &writes_),
        validation_(session, &reads_, &writes_, &redo_),
        local_(session, &reads_, &writes_, &redo_, &duplicate_),
        remote_(session, &writes_, &links_, &pending_),
        prepares_(session, &reads_, &writes_, &links_, &pending_, &duplicate_),
        inserts_(session, &reads_, &writes_, &links_, &redo_, &validation_, &duplicate_),
        decision_(session, &writes_, &links_, &pending_, &remote_) {}
  Commit(const Commit&) = delete;
  Commit& operator=(const Commit&) = delete;

  // Does what Transaction::Commit does, but the result does not wait for the disk. Call it once for each transaction.
  // `claim` may be null: for a transaction by hand. It must outlive the await.
  coro::Async<Status> Run(PrecedenceClaim* claim) {
    Begin();
    if (session_->precedence->somebody_has_it() && Writes()) [[unlikely]]
      return RunInTurn(claim);
    return RunNow();
  }
  // Ok if everything that was read is unchanged; else Aborted, or the reason why that is not known.
  coro::Async<Status> Validate();
  // Forgets the commit.
  void Clear() {
    if (!is_used_) return;
    is_used_ = may_hold_locks_ = false;
    duplicate_.Clear();
    redo_.Clear();
    pending_.Clear();
  }

  // True from when it asks for locks by verbs until each of them is released or owed.
  bool may_hold_locks() const { return may_hold_locks_; }
  // True if it has changes, which belong to epoch().
  bool logged() const { return redo_.logged(); }
  // The epoch of the commit; for one without changes, the latest epoch that it found at other nodes.
  uint64_t epoch() const { return redo_.epoch(); }
  // Gives back what it keeps for inserts into `index`, in which it is not active.
  void ForgetIndex(const index::RemoteIndex* index) { inserts_.ForgetIndex(index); }

 private:
  void Begin() {
    Clear();
    is_used_ = true;
  }
  // True if it changes something: such a commit may have to wait for precedence (rule 3 of precedence.h).
  bool Writes() const;
  // True if a word is read, or a record written, by verbs or calls: the commit is then a coroutine.
  bool UsesVerbs() const { return reads_.uses_verbs() || writes_.uses_verbs(); }
  coro::Task<Status> RunInTurn(PrecedenceClaim* claim);
  coro::Async<Status> RunNow();
  coro::Task<Status> RunWhenRoom();
  coro::Async<Status> RunReserved();
  Status CommitDirect() noexcept;  // an exception in the middle (memory) ends the process
  coro::Task<Status> CommitMixed();
  bool ValidatesBehind(std::span<const rdma::Operation> locks) const;
  // Takes the locks at other nodes. *validated: it also entered the epoch and did what Validation::Check does.
  coro::Task<Status> LockRemote(Redo::Stay* stay, bool* validated);
  void NoteNoneHeld();
  coro::Task<Status> InstallAll();

  SessionState* const session_;
  ReadSet& reads_;
  WriteBuffer& writes_;
  bool is_used_ = false;
  bool may_hold_locks_ = false;
  std::vector<rdma::Operation> operations_;  // scratch

  OwnerLinks links_;
  Redo redo_;
  CommitPending pending_;
  DuplicateKey duplicate_;
  Validation validation_;
  LocalWrites local_;
  RemoteWrites remote_;
  PrepareCalls prepares_;
  OneSidedInserts inserts_;
  Decision decision_;
};

}  // namespace gannet::txn
