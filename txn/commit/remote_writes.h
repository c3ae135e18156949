// RemoteWrites: a commit's steps with records of other nodes: locks, installs and releases by verbs; and the calls by
// which owners finish what they have to do themselves: removals, moves, and the unmaking of placeholders. Each step has
// one posting for all nodes. commit.cc says what follows if a step fails.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/coro/task.h"
#include "base/status.h"
#include "rdma/fabric.h"
#include "txn/access/write_buffer.h"
#include "txn/commit/commit_pending.h"
#include "txn/commit/owner_links.h"
#include "txn/peer/wire.h"
#include "txn/session/session_state.h"
#include "txn/session/write_set.h"

namespace gannet::txn {

// Used by the session's thread. It keeps its scratch from one commit to the next.
class RemoteWrites {
 public:
  // All must outlive this.
  RemoteWrites(SessionState* session, WriteBuffer* writes, OwnerLinks* links, CommitPending* pending)
      : session_(session), writes_(*writes), links_(*links), pending_(*pending) {}
  RemoteWrites(const RemoteWrites&) = delete;
  RemoteWrites& operator=(const RemoteWrites&) = delete;

  // Other nodes come first; then this one, if own records take the remote path.
  enum class Where : uint8_t { kElsewhere, kHere };

  // Appends the locks of all records to update or remove, which the caller posts. Aborted: one of the records is owed
  // by the same session.
  Status AppendLocks(std::vector<rdma::Operation>* operations);
  // Takes the results of the locks, the first of `operations`. Aborted: a record is locked or was changed. Unavailable:
  // it stays locked by a lost node (LockedTooLong). After an error of the posting, any lock may be held,
  // so an unlock becomes a pending operation for each.
  Status TakeLocks(const Status& posted, std::span<const rdma::Operation> operations);

  // Installs updates and unlocks inserts by verbs. What fails becomes a pending operation of the commit's group.
  coro::Task<void> Install(Where where);
  // Asks every owner for all of its part, even after another owner has failed. What may have been done or not becomes a
  // pending operation, after the commit point one of the commit's group. Others: the first error.
  coro::Task<Status> Finish(bool committed, Where where);
  // Releases the locks and placeholders of a commit that failed.
  coro::Task<void> Release();

  // Builds the whole new record in the image that the READ left in the arena.
  void BuildImage(WriteEntry& entry);
  // Sets *item to the work that `entry` needs from its owner at the end. Committed: removals, own inserts that were
  // removed again, moves. Aborted: placeholders are unmade. False: there is none.
  static bool FinishItemOf(const WriteEntry& entry, bool committed, FinishItem* item);

 private:
  bool Is(Where where, rdma::NodeId node) const { return (node == session_->self) == (where == Where::kHere); }
  bool EncodeFinish(OwnerCall* call, bool committed);

  SessionState* const session_;
  WriteBuffer& writes_;
  OwnerLinks& links_;
  CommitPending& pending_;
  std::vector<rdma::Operation> operations_;  // scratch
};

}  // namespace gannet::txn
