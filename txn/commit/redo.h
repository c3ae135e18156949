// Redo: a commit's part with the log: its room in the log's buffer, its epoch, and its changes (log/log.h has the
// argument, docs/log_format.md the format).
//
//   own node only    one transaction into this worker's buffer
//   several nodes    the changes of each other node's records into that node's log, by call (kTxnLog), as parts, those
//                    of all nodes together (owner_calls.h); after the last answer the own changes as the decision. A
//                    failure before the decision is in the buffer aborts the transaction, and the parts that were
//                    appended have no effect.
//
// The epoch of a commit over several nodes is the greatest epoch that it finds, after it has locked, at its own node
// and (by READs in the batch of the validation) at the nodes that it touched. It raises each node's epoch to that
// before it installs there. So a transaction that reads its writes finds an epoch that is not smaller, at its own node
// or at the record's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/coro/task.h"
#include "base/status.h"
#include "log/file/kill_point.h"
#include "log/format/transaction_format.h"
#include "rdma/fabric.h"
#include "txn/access/read_set.h"
#include "txn/access/write_buffer.h"
#include "txn/commit/owner_links.h"
#include "txn/durable/commit_log.h"
#include "txn/session/session_state.h"
#include "txn/session/write_set.h"

namespace gannet::txn {

// Used by the session's thread. Its state is that of one commit, up to Clear.
class Redo {
 public:
  // All must outlive this.
  Redo(SessionState* session, ReadSet* reads, WriteBuffer* writes, OwnerLinks* links)
      : session_(session), log_(session->log.get()), reads_(*reads), writes_(*writes), links_(*links) {}
  Redo(const Redo&) = delete;
  Redo& operator=(const Redo&) = delete;

  // Reserves room for the changes of the write set, if they are logged. *wait: there is none now; call AwaitRoom.
  // Others: those of log::LogWriter::Reserve.
  Status Reserve(bool* wait) {
    bytes_ = log_->RedoBytes(writes_.change_bytes());
    return bytes_ == 0 ? absl::OkStatus() : ReserveBytes(wait);
  }
  // ResourceExhausted: there is no room within durable_within.
  coro::Task<Status> AwaitRoom();
  // True if there are changes to log, and room for them.
  bool is_reserved() const { return bytes_ > 0; }

  // The commit's stay in its epoch. Enter begins it, when all locks are held and before anything is validated; it lasts
  // to the end of the install. Without a log, or without changes, it does nothing.
  class Stay {
   public:
    explicit Stay(Redo* redo) : redo_(redo) {}
    // May be called again. Must be called once, also by a commit that has failed.
    void Enter() {
      if (!redo_->is_reserved() || entered_ != 0) return;
      EnterEarly();
      log::MayDieHere(log::KillPoint::kCommitLocked);
    }
    // Begins it before the locks are held. When they are, Renew says whether the epoch is still the same, so that it
    // was that of every moment in between. Otherwise the stay goes on in the new epoch, and what was validated in
    // between does not count.
    void EnterEarly() {
      if (redo_->is_reserved()) Note(redo_->log_->writer().Enter());
    }
    bool Renew() {
      if (entered_ == 0) return true;
      const uint64_t early = entered_;
      const uint64_t now = redo_->log_->writer().Enter();
      redo_->log_->writer().Leave(early);
      log::MayDieHere(log::KillPoint::kCommitLocked);
      if (now == early) return true;
      Note(now);
      return false;
    }
    ~Stay() {
      if (entered_ == 0) return;
      redo_->log_->writer().Leave(entered_);
      redo_->log_->writer().Release(redo_->bytes_);
      redo_->bytes_ = 0;
    }
    Stay(const Stay&) = delete;
    Stay& operator=(const Stay&) = delete;

   private:
    void Note(uint64_t entered) {
      entered_ = redo_->epoch_ = entered;
      redo_->logged_ = true;
    }

    Redo* redo_;
    uint64_t entered_ = 0;
  };

  // FailedPrecondition: a bulk load of this node is not durable, so nothing may be logged.
  Status CheckLoads() const {
    if (log_->any_unsaved_load()) [[unlikely]]
      return UnsavedLoads::Refusal(session_->self);
    return absl::OkStatus();
  }
  // Appends the changes of a commit at this node only.
  void Append() { Append(log::TransactionPart::kWhole, 0); }
  // Appends those of a commit over several nodes, to the logs of all of them. Called after the validation: nothing is
  // installed unless all redo is in its logs' buffers.
  coro::Task<Status> AppendAtAll();

  // The key of an insert at this node is in its index now, so every removal of it that comes before this insert has
  // been noted.
  void RaiseInsertVersion(WriteEntry& entry);
  // Called before the key leaves its index.
  void NoteRemovedVersion(const WriteEntry& entry);

  // Adds READs of the other nodes' epochs to the validation's batch; takes what they found. FailedPrecondition: there
  // are changes to log, and one of those nodes has a load that is not durable (unsaved_loads.h).
  std::span<const uint64_t> AppendEpochReads(std::vector<rdma::Operation>* operations);
  Status NoteRemoteEpochs(std::span<const uint64_t> words, std::span<const rdma::Operation> operations);

  // True if it has changes, which belong to epoch().
  bool logged() const { return logged_; }
  // The epoch of the commit; for one without changes, the latest epoch that it found at other nodes.
  uint64_t epoch() const { return epoch_; }
  // A commit that failed only read.
  void Void() {
    logged_ = false;
    epoch_ = 0;
  }
  void Clear() {
    bytes_ = 0;
    Void();
  }

 private:
  Status ReserveBytes(bool* wait);
  void Append(log::TransactionPart part, uint64_t id);
  void AddRedo(log::TransactionEncoder* encoder, WriteEntry& entry);
  bool AddSmallRedo(log::TransactionEncoder* encoder, const WriteEntry& entry);
  coro::Task<StatusOr<size_t>> AppendPart(OwnerCall* call, uint64_t deadline_nanos);
  bool EncodePart(OwnerCall* call, uint64_t id);

  SessionState* const session_;
  CommitLog* const log_;
  ReadSet& reads_;
  WriteBuffer& writes_;
  OwnerLinks& links_;
  size_t bytes_ = 0;  // reserved in the log's buffer; 0: nothing to log
  uint64_t epoch_ = 0;
  bool logged_ = false;
};

}  // namespace gannet::txn
