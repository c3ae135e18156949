// Commit: one commit of one transaction, from its first lock to the last install; or one validation.
//
// It takes the read set and the writes, and holds what only the commit knows: the reservation in the log and the epoch,
// the insert that met a record, the debts that the transaction waits for. It is made when the transaction commits or
// validates, and stays until the transaction ends, because the epoch says what its result waits for, and because debts
// ask whether it may hold a lock. The transaction lends it memory that is kept for the next commit (CommitScratch), so
// that a commit allocates nothing.
//
//   commit.cc          the protocol: lock, validate, install, unlock; records of this node
//   commit_remote.cc   its part with records of other nodes
//   insert_remote.cc   its part with inserts by verbs
//   decision.cc        its part with several changes at other nodes: what survivors of this node need
//   redo.cc            its part with the log: epoch, redo
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/coro/async.h"
#include "base/coro/started.h"
#include "base/coro/task.h"
#include "base/status.h"
#include "log/transaction_format.h"
#include "rdma/fabric.h"
#include "rdma/message_buffer.h"
#include "rdma/rpc.h"
#include "txn/access/access.h"
#include "txn/access/access_internal.h"
#include "txn/access/neighbour_reads.h"
#include "txn/durable/commit_log.h"
#include "txn/peer/owner_calls.h"
#include "txn/peer/precedence_claim.h"
#include "txn/peer/wire.h"
#include "txn/session/debts.h"
#include "txn/session/session_state.h"
#include "txn/store/key_status.h"

namespace gannet::txn {

// An insert by verbs (insert_remote.cc).
struct Placeholder {
  uint32_t entry = 0;  // its number in the write set
  LentBlock block;
  uint64_t state = 0;          // without lock and owner
  std::span<std::byte> image;  // in the transaction's arena
  bool is_given = false;       // the block is a record, or the owner's again
};

// Inserts by verbs into one index of another node.
struct IndexInserts {
  index::RemoteIndex* index = nullptr;
  std::unique_ptr<index::InsertBatch> batch;
};

// State that one commit leaves to the next one of the same transaction object. Used by one commit at a time.
struct CommitScratch {
  // Slot of the name under which decisions are noted. A decision that becomes a debt takes the slot along (debts.h).
  std::optional<uint16_t> decision_slot;

  // The rest is kept for its capacity.
  std::vector<rdma::Operation> operations;
  NeighbourReads words;                       // of a validation
  NeighbourReads removed;                     // versions of removed records, for the placeholders
  std::vector<uint32_t> decided;              // numbers of a decision's entries
  std::vector<rdma::GlobalAddress> finished;  // records of the decision call in flight
  std::vector<Placeholder> placeholders;
  std::vector<index::Insertion> insertions;   // of the placeholders
  std::vector<ReadEntry> existing;            // what they met
  std::vector<IndexInserts> index_inserts;    // of all commits
  std::vector<index::InsertBatch*> batch_of;  // for each of the insertions
  std::vector<index::InsertBatch*> batches;   // those that are used
  std::vector<coro::Started<Status>> finds;   // of these, in progress
  bool expects_leaves = true;                 // the posting of the locks READs the leaves that caches expect
  rdma::MessageBuffer message;                // for a request
  std::vector<OwnerCall> owner_calls;         // by node; empty until a commit calls owners
};

// Releases what a write without effect holds at this node: its lock, its record, the block to move to.
void ReleaseDirect(SessionState& session, WriteEntry& entry);

class Commit {
 public:
  // All must outlive this. `claim` may be null: for a transaction by hand.
  Commit(SessionState* session, Access* access, PrecedenceClaim* claim, CommitScratch* scratch)
      : session_(session),
        log_(session->log.get()),
        claim_(claim),
        reads_(access->reads()),
        writes_(access->writes()),
        scratch_(*scratch) {}
  Commit(const Commit&) = delete;
  Commit& operator=(const Commit&) = delete;

  // Like Transaction::Commit, but the result does not wait for the disk. Call it once.
  coro::Async<Status> Run() {
    if (session_->precedence->somebody_has_it() && Writes()) [[unlikely]]
      return RunInTurn();
    return RunNow();
  }
  // Ok if everything that was read is unchanged; else Aborted, or the reason why that is not known. Call it once, and
  // then not Run.
  coro::Async<Status> Validate();

  // True from when it asks for locks by verbs until each of them is released or owed.
  bool may_hold_locks() const { return may_hold_locks_; }
  // True if it has changes, which belong to epoch().
  bool logged() const { return logged_; }
  // Without changes: the latest epoch that it found at other nodes.
  uint64_t epoch() const { return epoch_; }

 private:
  static constexpr size_t kNone = SIZE_MAX;
  class RedoScope;  // the commit's stay in its epoch, and its reservation in the log's buffer (redo_scope.h)

  // commit.cc
  // Rule 3 of precedence.h.
  bool Writes() const;
  coro::Task<Status> RunInTurn();
  coro::Async<Status> RunNow();
  void TakeReadForUpdate();
  // True if a word is read, or a record written, by verbs or calls: the commit is then a coroutine.
  bool UsesVerbs() const { return reads_.uses_verbs() || writes_.uses_verbs(); }
  Status LockedTooLong(uint64_t state) const { return txn::LockedTooLong(session_->local->fabric, state); }
  Status LockDirect(WriteEntry& entry);
  void ApplyToOwnInsert(WriteEntry& entry);
  Status IndexInsert(WriteEntry& entry);
  bool IsOwnLockOf(const ReadEntry& read, uint64_t word) const;
  bool IsReadDirectly(const ReadEntry& read) const { return session_->direct && read.word.node() == session_->self; }
  Status NoteExisting(const WriteEntry& insert, const ReadEntry& existing);
  // AlreadyExists for the insert that met a live record.
  Status Exists() const { return KeyExists(*writes_[exists_].table, writes_[exists_].key); }
  std::span<const ReadEntry> RecordsInDoubt() const;
  Status ValidateDirect() const;
  void InstallDirect(WriteEntry& entry);
  Status LockAndIndexDirect();
  Status RemakeInsert(WriteEntry& entry);
  Status PrepareMove(WriteEntry& entry);
  void FinishMove(WriteEntry& entry);
  Status CommitDirect() noexcept;  // an exception in the middle (memory) ends the process

  // commit_remote.cc
  coro::Task<Status> CommitMixed();
  coro::Task<Status> LockRemote();
  coro::Task<Status> PrepareRemote();
  // `in_the_past`: the moment at which all was read may be any since the transaction began.
  coro::Task<Status> ValidateMixed(bool in_the_past);
  // The same in two steps: adds the READs to scratch_.operations, which the caller posts; judges what they found. The
  // read set must not change in between.
  struct Validation {
    size_t words = 0;
    std::span<const uint64_t> epochs;
  };
  Validation AppendValidation(bool in_the_past);
  Status JudgeValidation(const Validation& validation);
  // Other nodes come first; then this one, if own records take the remote path.
  enum class Where : uint8_t { kElsewhere, kHere };
  bool Is(Where where, rdma::NodeId node) const { return (node == session_->self) == (where == Where::kHere); }
  coro::Task<void> InstallRemote(Where where);
  coro::Task<void> ReleaseRemote();
  void NoteNoneHeld();
  // Writes the begin of a request: the name of `slot`, which is taken if there is none, and a new number.
  void PutCaller(std::span<std::byte> place, std::optional<uint16_t>* slot);
  // For operations that failed but must be done (debts.h). After the commit point the transaction waits for them.
  void OweCall(OwnerCall* call, rdma::MethodId method, std::span<const std::byte> message);
  void OweUnlock(const WriteEntry& entry);
  void OweInstall(const WriteEntry& entry);
  coro::Task<Status> AwaitDebts(Status first_error);
  void LeaveSlot();
  // One for each data node.
  std::span<OwnerCall> OwnerCalls();
  // Sends call->request.
  coro::Task<StatusOr<size_t>> SendTo(OwnerCall* call, rdma::MethodId method, std::span<std::byte> response,
                                      absl::Duration timeout);
  // Counts an insert or a removal at another node.
  void CountChange(AccessKind kind, const WriteEntry& entry, AccessPath path);
  // The owner prepares the write: an insert, or a record that has to move. If not `indexed`.
  bool IsPrepared(const WriteEntry& entry) const;
  bool EncodePrepare(OwnerCall* call);
  Status DecodePrepared(OwnerCall* call, std::span<const std::byte> response);
  Status DecodeMade(const OwnerCall& call, rdma::WireReader& reader);
  bool FinishItemOf(const WriteEntry& entry, bool committed, FinishItem* item) const;
  bool EncodeFinish(OwnerCall* call, bool committed);
  coro::Task<Status> FinishAtOwners(bool committed, Where where);
  void BuildImage(WriteEntry& entry);
  uint64_t DebtDeadline() const;
  coro::Task<Status> InstallAll();

  // insert_remote.cc
  // Whether all that IsPrepared is prepared by verbs. Otherwise all is by calls.
  bool PreparesByVerbs() const;
  coro::Task<Status> Borrow(rdma::NodeId owner, uint64_t connection, size_t bytes);
  // If the inserts are made by verbs: makes images of their placeholders.
  coro::Task<Status> MakePlaceholders();
  // Adds READs of the leaves where their keys may belong to scratch_.operations.
  void BeginIndexing();
  // There is at least one. *validated: also entered the epoch and did what ValidateMixed does, because nothing is left
  // to prepare.
  coro::Task<Status> IndexPlaceholders(RedoScope* redo, bool* validated);
  coro::Task<Status> ReadSplitLeaves();
  coro::Task<Status> FindLeaves();
  coro::Task<Status> ChangeLeaves(RedoScope* redo, bool* validated);
  // With a log: adds READs of the versions of removed records with their keys to scratch_.operations, in a posting
  // behind the locks of the leaves; then has the placeholders start above them.
  void AskForRemovedVersions();
  void StartAboveRemovedVersions();
  void TakeInserted();
  coro::Task<Status> NoteAllExisting();
  index::InsertBatch* BatchFor(index::RemoteIndex* index);
  // At the end of all of the above, also after an error.
  void GiveBackPlaceholders();

  // decision.cc
  rdma::NodeId OwnerOf(const WriteEntry& entry) const;
  coro::Task<Status> JoinOwners();
  // The connection over which the owner knows this node now.
  coro::Task<StatusOr<uint64_t>> Join(rdma::NodeId owner);
  // The connection of the entries at `node`.
  uint64_t ConnectionOf(rdma::NodeId node) const;
  bool NeedsDecider() const;
  void OrderForDecision();
  FinishItem DecidedItemOf(WriteEntry& entry);
  size_t EncodeDecision(std::span<const uint32_t> order, size_t next, rdma::NodeId keeper, bool only_note);
  void OweDecision(rdma::NodeId keeper);
  coro::Task<bool> TellDecision(rdma::NodeId keeper, bool only_note);
  coro::Task<void> Decide();

  // redo.cc
  coro::Async<Status> RunReserved();
  coro::Task<Status> RunWhenRoom();
  void AppendRedo(log::TransactionPart part, uint64_t id);
  void AddRedo(log::TransactionEncoder* encoder, WriteEntry& entry);
  bool AddSmallRedo(log::TransactionEncoder* encoder, const WriteEntry& entry);
  coro::Task<Status> LogMixed();
  coro::Task<StatusOr<size_t>> LogPart(OwnerCall* call, uint64_t deadline_nanos);
  bool EncodePart(OwnerCall* call, uint64_t id);
  void RaiseInsertVersion(WriteEntry& entry);
  void NoteRemovedVersion(const WriteEntry& entry);
  // READs of the other nodes' epochs, for the validation's batch; then their results. FailedPrecondition if there are
  // changes to log, and one of those nodes has a load that is not durable (unsaved_loads.h).
  std::span<const uint64_t> AskForEpochs();
  Status NoteRemoteEpochs(std::span<const uint64_t> words);

  SessionState* const session_;
  CommitLog* const log_;
  PrecedenceClaim* const claim_;
  ReadSet& reads_;
  WriteBuffer& writes_;
  CommitScratch& scratch_;

  size_t exists_ = kNone;  // number of the entry whose insert met a live record
  size_t redo_bytes_ = 0;  // reserved in the log's buffer; 0: nothing to log
  uint64_t epoch_ = 0;
  bool logged_ = false;
  bool may_hold_locks_ = false;
  std::shared_ptr<DebtTicket> ticket_;  // null: no debt after the commit point
  std::span<const std::byte> request_;  // the one in scratch_.message
};

}  // namespace gannet::txn
