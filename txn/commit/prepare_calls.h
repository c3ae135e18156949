// PrepareCalls: the calls by which a commit has the owners make placeholders for its inserts, and new places for
// records that outgrow theirs (kTxnPrepare, txn/peer/wire.h). one_sided_inserts.h does the same for inserts by verbs.
#pragma once

#include <cstddef>
#include <span>

#include "base/coro/task.h"
#include "base/status.h"
#include "rdma/rpc.h"
#include "txn/access/read_set.h"
#include "txn/access/write_buffer.h"
#include "txn/commit/commit_pending.h"
#include "txn/commit/duplicate_key.h"
#include "txn/commit/owner_links.h"

namespace gannet::txn {

// Used by the session's thread.
class PrepareCalls {
 public:
  // All must outlive this.
  PrepareCalls(SessionState* session, ReadSet* reads, WriteBuffer* writes, OwnerLinks* links, CommitPending* pending,
               DuplicateKey* duplicate)
      : session_(session),
        reads_(*reads),
        writes_(*writes),
        links_(*links),
        pending_(*pending),
        duplicate_(*duplicate) {}
  PrepareCalls(const PrepareCalls&) = delete;
  PrepareCalls& operator=(const PrepareCalls&) = delete;

  // Prepares all that is to be prepared and is not in its index yet. Aborted: a prepare met a record that is locked or
  // absent. After a call of unknown outcome, its cancel is a pending operation. Others: those of DuplicateKey::Note and
  // of the owners.
  coro::Task<Status> Run();

 private:
  bool Encode(OwnerCall* call);
  Status Decode(OwnerCall* call, std::span<const std::byte> response);
  Status DecodeMade(const OwnerCall& call, rdma::WireReader& reader);

  SessionState* const session_;
  ReadSet& reads_;
  WriteBuffer& writes_;
  OwnerLinks& links_;
  CommitPending& pending_;
  DuplicateKey& duplicate_;
};

}  // namespace gannet::txn
