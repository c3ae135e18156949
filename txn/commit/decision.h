// Decision: the step of a commit that changes more than one thing at other nodes: all of it is first told to one of the
// owners, the decider, so that survivors of this node's death can complete it (repair.h). This costs one call, which
// also does the work that the owner has to do itself. If there are several owners, one more call before that tells
// another of them, which does nothing yet: if the decider died together with this node, the decider's part may have
// been seen.
//
// From the first answer on, the transaction is committed whatever happens to this node. Until then no other transaction
// sees any of it: the install at other nodes begins after the last answer, and that at this node after all of those. If
// there is no answer, the request is a pending operation like every other. If it is not settled in time, the
// transaction continues without it: it is committed as long as this node lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/coro/task.h"
#include "rdma/fabric.h"
#include "rdma/message_buffer.h"
#include "txn/access/write_buffer.h"
#include "txn/commit/commit_pending.h"
#include "txn/commit/owner_links.h"
#include "txn/commit/remote_writes.h"
#include "txn/peer/wire.h"
#include "txn/session/write_set.h"

namespace gannet::txn {

// Used by the session's thread. It keeps its scratch from one commit to the next.
class Decision {
 public:
  // All must outlive this.
  Decision(SessionState* session, WriteBuffer* writes, OwnerLinks* links, CommitPending* pending, RemoteWrites* remote)
      : session_(session), writes_(*writes), links_(*links), pending_(*pending), remote_(*remote) {}
  Decision(const Decision&) = delete;
  Decision& operator=(const Decision&) = delete;

  // The changes at other nodes take effect one after the other. True if a death could leave only a part of them.
  bool IsNeeded() const;
  // Tells the decider, after the commit point. What the decider installs is installed then. What may have been told or
  // not is a pending operation of the commit's group.
  coro::Task<void> Make();

 private:
  void Order();
  FinishItem ItemOf(WriteEntry& entry);
  size_t Encode(size_t next, rdma::NodeId keeper, bool only_note);
  coro::Task<bool> Tell(rdma::NodeId keeper, bool only_note);

  SessionState* const session_;
  WriteBuffer& writes_;
  OwnerLinks& links_;
  CommitPending& pending_;
  RemoteWrites& remote_;

  // Scratch.
  std::vector<uint32_t> entries_;              // numbers of the entries at other nodes, the decider's first
  std::vector<rdma::GlobalAddress> finished_;  // records of the call in flight
  rdma::MessageBuffer message_;
  std::span<const std::byte> request_;  // in message_
};

}  // namespace gannet::txn
