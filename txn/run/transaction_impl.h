// TransactionImpl: the working part of Transaction: its accesses, its read set and writes, and its commit. It begins
// and ends them together. Internal to txn/.
//
//   txn/access/read_set.h       what was read
//   txn/access/write_buffer.h   what is to be written
//   txn/access/access.h         both, and the parts that fill them
//   txn/commit/commit.h         a commit, or a validation, of them
//
// Belongs to a session, which uses it for one transaction after the other.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "base/coro/async.h"
#include "base/coro/task.h"
#include "base/status.h"
#include "rdma/global_address.h"
#include "txn/access/access.h"
#include "txn/commit/commit.h"
#include "txn/peer/precedence_claim.h"
#include "txn/run/transaction.h"
#include "txn/session/session_state.h"

namespace gannet::txn {

class TransactionImpl final : public OpenTransaction {
 public:
  explicit TransactionImpl(SessionState* session) : session_(session), access_(session), commit_(session, &access_) {
    access_.points().SetJudge([this](Status met) { return JudgeWrite(std::move(met)); });
  }

  // `claim`: that of the Run to which this attempt belongs, which lives longer; null for a transaction by hand.
  void Begin(PrecedenceClaim* claim);
  // Drops everything that was not committed; the object is then ready for Begin.
  void End();

  // Ends, and begins the same attempt again.
  void Restart();
  // Called before the end of an attempt that found the memory full. True: it may be run again after AwaitMemory, which
  // is called after its end. Memory of removed rows may be free then: for some of it the attempt itself may have been
  // the last that could still read it.
  bool MayAwaitMemory();
  // Waits until all memory that was retired before the call is free, but not for long: Aborted.
  coro::Task<Status> AwaitMemory();
  // The transaction passed its commit point, or its result was found valid.
  void GiveBackPrecedence() {
    if (claim_ != nullptr) claim_->GiveBack();
  }
  // The body returned Aborted although nothing failed.
  void NoteAskedAgain() {
    if (claim_ != nullptr) claim_->NoteAskedAgain();
    session_->meter.NoteAbort(AbortCause::kBody);
    noted_end_ = true;
  }
  // `status` is the result of Commit. Called before End.
  void NoteCommitted(const Status& status) {
    if (!status.ok()) [[unlikely]]
      return NoteNotCommitted(status);
    session_->meter.NoteCommit(access_.writes().entries());
    noted_end_ = true;
  }

  SessionState& session() { return *session_; }
  Access& access() { return access_; }
  PointAccess& points() { return access_.points(); }
  Scanner& scanner() { return access_.scanner(); }
  // Updates and removals by handle, and inserts.
  WriteBuffer& writes() { return access_.writes(); }

  // Reads by secondary indexes, as those of Transaction and IndexReader. Before others, ReadyToReadBy.
  coro::Async<StatusOr<RowBy>> GetBy(const SecondaryIndex& index, const Key& key, bool for_update);
  coro::Async<Status> ReadyToReadBy(const SecondaryIndex& index);
  coro::Task<Status> RowsOfEntries(const SecondaryIndex& index, const ScanRows& entries, IndexReader::EntrySpan span,
                                   ScanOptions options, ScanRows* rows);

  // There was no memory, or no room in the log, for an insert of `key`: AlreadyExists if it is there, else `refused`. A
  // failure of the look is one of the transaction.
  Status AfterRefusedInsert(const Table& table, const Key& key, Status refused);

  // Does what Transaction::Commit does, but the result does not wait for the disk.
  coro::Async<Status> Commit();
  coro::Async<Status> Validate();

  // The first failure of one of its operations; Ok: none.
  const Status& failure() const { return access_.failure().first(); }
  // Makes the transaction a failed one, unless it has failed already.
  void Fail(const Status& failure) { access_.failure().Set(failure); }

  // True if it has asked for a remote lock of `record`, which is neither released nor owed (pending_operations.h).
  bool MayHold(rdma::GlobalAddress record) const override {
    return commit_.may_hold_locks() && access_.writes().FindRecord(record) >= 0;
  }

  // Gives back what it keeps for inserts into `index`, in which it is not active.
  void ForgetIndex(const index::RemoteIndex* index) override { commit_.ForgetIndex(index); }

  // Call it after Commit or Validate: the epoch that must be durable before their result may be acknowledged; 0: none.
  uint64_t EpochToAwait() const;

 private:
  // Counts what it read, once; before a commit adds to it.
  void NoteReads();
  [[gnu::cold]] void NoteNotCommitted(const Status& status);
  coro::Task<Status> NoteFailureOf(coro::Task<Status> validation);
  // Keeps the secondary indexes first.
  coro::Task<Status> CommitWithIndexes();
  coro::Task<StatusOr<RowBy>> GetByEntry(const SecondaryIndex& index, std::string_view entry_key, bool for_update);
  coro::Task<Status> KeepBeforeRead();
  // `found`, an error about rows and indexes, if the transaction validates; else the reason why it does not.
  coro::Task<Status> IfValid(Status found);
  // `met`, NotFound or AlreadyExists of a write by its key, if what the transaction has read is unchanged.
  coro::Task<Status> JudgeWrite(Status met);
  // Notes the failure of a read by an index. An index that is wrong is one if the transaction validates.
  coro::Task<Status> JudgeRead(Status read);

  SessionState* const session_;
  PrecedenceClaim* claim_ = nullptr;
  uint64_t entered_ = 0;  // the epoch in which it began
  bool active_ = false;
  bool runs_again_ = false;  // the last attempt that it was used for found the memory full,
  int shortages_ = 0;        // and so did all of so many, one after the other
  Access access_;
  txn::Commit commit_;
  bool noted_reads_ = false;
  bool noted_end_ = false;
};

}  // namespace gannet::txn
