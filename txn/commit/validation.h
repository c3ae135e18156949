// Validation: whether what a transaction has read is unchanged. commit.cc says when it takes place, and why that is
// enough.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/coro/task.h"
#include "base/status.h"
#include "rdma/fabric.h"
#include "txn/access/neighbour_reads.h"
#include "txn/access/read_set.h"
#include "txn/access/write_buffer.h"
#include "txn/commit/redo.h"
#include "txn/session/session_state.h"

namespace gannet::txn {

// Used by the session's thread. It keeps its scratch from one commit to the next.
class Validation {
 public:
  // All must outlive this.
  Validation(SessionState* session, ReadSet* reads, WriteBuffer* writes, Redo* redo)
      : session_(session), reads_(*reads), writes_(*writes), redo_(*redo) {}
  Validation(const Validation&) = delete;
  Validation& operator=(const Validation&) = delete;

  // Adds what was read for update to the read set. Called for a transaction that locks nothing.
  void TakeReadForUpdate();
  // Looks at all that was read by this node's CPU. Aborted: something has changed.
  Status CheckLocal() const;
  // The moment at which all that was read must have been as it was seen.
  enum class Moment : uint8_t {
    kAny,          // any since the transaction began; it changes nothing
    kNow,          // all locks of the transaction are held
    kBehindLocks,  // the READs follow the locks that are not held yet, in one posting to the same node
  };

  // Looks at all that was read, at other nodes by READs, whose errors it returns, too. FailedPrecondition: that of
  // Redo::NoteRemoteEpochs.
  coro::Task<Status> Check(Moment moment);

  // These are the two steps of Check: one adds the READs to *operations, which the caller posts, the other judges what
  // they found. The read set must not change in between.
  struct Pending {
    size_t words = 0;
    std::span<const uint64_t> epochs;
  };
  Pending AppendReads(Moment moment, std::vector<rdma::Operation>* operations);
  Status Judge(const Pending& pending, std::span<const rdma::Operation> operations);
  // True if Check(kNow) would READ something, all of it at `node`, where this transaction changes records. (The epochs
  // are those of the nodes that it touched.)
  bool ReadsOnlyAt(rdma::NodeId node) const;

 private:
  uint64_t ConnectionOf(rdma::NodeId node) const;
  // True if a claim shows that the witness has not changed, so that it need not be READ.
  bool IsConfirmed(const ReadEntry& witness) const { return session_->Confirms({witness.word, witness.seen}); }
  std::span<const ReadEntry> RecordsInDoubt() const;
  bool IsOwnLockOf(const ReadEntry& read, uint64_t word) const;
  bool IsReadDirectly(const ReadEntry& read) const { return session_->direct && read.word.node() == session_->self; }

  SessionState* const session_;
  ReadSet& reads_;
  WriteBuffer& writes_;
  Redo& redo_;

  // Scratch.
  std::vector<size_t> confirmed_;  // by number: words without a READ, because of claims
  NeighbourReads words_;
  std::vector<rdma::Operation> operations_;
};

}  // namespace gannet::txn
