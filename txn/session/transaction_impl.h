// The working part of Transaction; one is reused for many transactions of a session. Internal to txn/.
//
// Where things are:
//   transaction_impl.cc   begin, end, write buffer, read-your-own-writes
//   direct_access.cc      reads of this node's records by its CPU
//   remote_access.cc      reads of other nodes' records: one-sided or by call
//   remote_scan.cc        scans of them
//   commit.cc             the protocol: lock, validate, install, unlock; records of this node
//   commit_remote.cc      its part with records of other nodes
//   decision.cc           its part with several changes at other nodes: what survivors of this node need
//   redo.cc               its part with the log: epoch, redo, what to wait for
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/coro/async.h"
#include "index/index.h"
#include "index/record_header.h"
#include "log/transaction_format.h"
#include "rdma/epoch.h"
#include "rdma/fabric.h"
#include "rdma/message_buffer.h"
#include "txn/access/access_set.h"
#include "txn/access/arena.h"
#include "txn/access/key_status.h"
#include "txn/access/neighbour_reads.h"
#include "txn/commit/owner_calls.h"
#include "txn/commit/precedence.h"
#include "txn/owner/wire.h"
#include "txn/record/record.h"
#include "txn/session/session_internal.h"
#include "txn/transaction.h"

namespace gannet::txn {

// How often a read looks again at a record that is locked or being removed before it gives up (Aborted).
inline constexpr int kLookAgain = 64;

class TransactionImpl {
 public:
  explicit TransactionImpl(SessionState* session);

  // `claim`: of the Run that this is an attempt of, and lives longer; null for a transaction by hand.
  void Begin(PrecedenceClaim* claim);
  // Drops whatever was not committed; the object is then ready for Begin.
  void End();

  // End, and Begin of the same attempt.
  void Restart();
  // The transaction passed its commit point, or its result was found valid.
  void GiveBackPrecedence() {
    if (claim_ != nullptr) claim_->GiveBack();
  }
  // The body returned Aborted though nothing failed.
  void NoteAskedAgain() {
    if (claim_ != nullptr) claim_->NoteAskedAgain();
  }

  coro::Async<Status> Get(const Table& table, Key key, std::span<std::byte> out, uint32_t offset);
  coro::Async<Status> GetMany(std::span<GetRequest> requests);
  coro::Async<StatusOr<RecordHandle>> GetForUpdate(const Table& table, Key key, std::span<std::byte> out,
                                                   uint32_t offset);
  Status Update(RecordHandle handle, std::span<const std::byte> data, uint32_t offset, bool resize);
  coro::Async<Status> Update(const Table& table, Key key, std::span<const std::byte> data);
  Status Insert(const Table& table, Key key, std::span<const std::byte> payload);
  Status Remove(RecordHandle handle);
  coro::Async<Status> Remove(const Table& table, Key key);
  coro::Async<Status> Scan(const Table& table, const index::ScanRange& range, ScanRows* rows, ScanOptions options);
  coro::Async<Status> Commit();
  coro::Async<Status> Validate();

  SessionState& session() { return *session_; }

  // The first failure (transaction.h) of one of its operations; Ok: none. Transaction lets no operation through after
  // it, and no Commit.
  const Status& failure() const { return failure_; }
  // Makes it one that has failed, unless it is.
  void Fail(Status failure) { Failed(std::move(failure)).IgnoreError(); }

  // Whether it has asked for a remote lock of `record` and is not over: it may hold it (debts.h).
  bool MayHold(rdma::GlobalAddress record) const { return asks_for_locks_ && writes_.FindRecord(record) >= 0; }

  // After Commit or Validate: what must be durable before their result may be acknowledged. 0: it may be now.
  uint64_t EpochToAwait() const;

 private:
  static constexpr size_t kNone = SIZE_MAX;

  // What looking at one record gave.
  enum class Look : uint8_t {
    kDone,      // request->status is set
    kGone,      // the record is absent or holds another key: ask the index again
    kConflict,  // locked for long
  };

  // transaction_impl.cc
  // Called by an operation that returns `status`, which is not Ok and not what a single request came to: a failure is
  // remembered. (A wrong argument is none.) Returns `status`.
  Status Failed(Status status);
  // The same of a GetMany: the requests get it, too.
  Status Failed(Status status, std::span<GetRequest> requests);
  Status CheckKey(const Table& table, const Key& key) const;
  // Serves `request` from a record of the write set.
  void ReadOwn(WriteEntry& entry, uint32_t index, GetRequest* request);
  // A request of the user's was looked at: what its Get or GetMany returns if nothing else happens.
  static Status Served(GetRequest* request);
  // The key is not in the index: perhaps this transaction inserts it; else NotFound, under `witness`.
  void ReadMissing(GetRequest* request, const index::Witness& witness);
  WriteEntry* FindOwnInsert(const Table& table, const Key& key);
  // `share` of the transaction's redo becomes `bytes`. ResourceExhausted: that is more than the log takes of one.
  Status BufferRedo(uint32_t* share, size_t bytes) {
    const size_t total = buffered_redo_ - *share + bytes;
    if (total > most_redo_) [[unlikely]]
      return TooMuchRedo(total);
    buffered_redo_ = total;
    *share = static_cast<uint32_t>(bytes);
    return absl::OkStatus();
  }
  Status TooMuchRedo(size_t total);
  RecordHandle AddForUpdate(const GetRequest& request, rdma::GlobalAddress record, uint64_t state, std::byte* direct,
                            std::byte* image);
  void AddPatch(WriteEntry& entry, std::span<const std::byte> data, uint32_t offset);
  void ReplacePayload(WriteEntry& entry, std::span<const std::byte> data);
  void JoinPatches(WriteEntry& entry);
  // The payload of `entry` with this transaction's changes; [offset, offset + out.size()) must lie in it.
  void CopyOwnPayload(const WriteEntry& entry, uint32_t offset, std::span<std::byte> out);
  Status InsertDirect(const Table& table, const Key& key, std::span<const std::byte> payload);
  Status CheckWrite(const WriteEntry& entry, size_t size, uint32_t offset, bool resize) const;
  Status LockedTooLong(uint64_t state) const;

  // direct_access.cc
  std::byte* Direct(rdma::GlobalAddress address) const { return session_->memory + address.offset(); }
  Look LookDirect(GetRequest* request, rdma::GlobalAddress record);
  Status GetDirect(GetRequest* request);
  Status LocateDirect(std::span<GetRequest> requests);
  void FindOrdered(std::span<const GetRequest> requests);
  Status GetManyDirect(std::span<GetRequest> requests);
  Status GetGroupDirect(std::span<GetRequest> requests);
  static bool IsRemoved(const WriteEntry& entry) { return entry.kind == WriteKind::kRemove || entry.removed; }
  Status ScanDirect(const Table& table, const index::ScanRange& range, ScanRows* rows, ScanOptions options);
  // Appends the rows of `found_` to *rows, merged with this transaction's inserts.
  bool AppendRow(const Table& table, const index::Entry& entry, ScanRows* rows, ScanOptions options, Look* look);
  void MergeOwnInserts(const Table& table, const index::ScanRange& range, ScanRows* rows, ScanOptions options);
  void AppendOwnRow(WriteEntry& entry, uint32_t index, ScanRows* rows, ScanOptions options);
  // `range` with a limit that leaves room for the rows of it that this transaction has removed.
  index::ScanRange BeyondOwnRemovals(const Table& table, index::ScanRange range) const;

  // remote_access.cc
  coro::Task<Status> GetOne(GetRequest request);
  coro::Task<StatusOr<RecordHandle>> GetOneForUpdate(GetRequest request);
  coro::Task<Status> GetRemote(GetRequest* request);
  coro::Task<Status> GetByCall(GetRequest* request, rdma::NodeId owner);
  // The owner's answer, in response_. It does not wait for locked records, and is asked again.
  coro::Task<StatusOr<size_t>> AskOwner(rdma::NodeId owner, rdma::MethodId method, std::span<const std::byte> question);
  coro::Task<Status> GetManyMixed(std::span<GetRequest> requests);
  coro::Task<Status> GetManyOfAll(std::span<GetRequest> requests);
  coro::Task<Status> GetManyApart(std::span<GetRequest> requests);
  std::vector<uint32_t> RemoteOf(std::span<const GetRequest> requests) const;
  coro::Task<Status> GetManyRemote(std::span<GetRequest> requests, std::span<const uint32_t> remote);
  coro::Task<Status> FindRemote(std::span<GetRequest> requests, std::span<const uint32_t> which);
  Look LookAtImage(GetRequest* request, const index::FindResult& found, const std::byte* image, size_t image_bytes);
  uint32_t FirstReadBytes(const Table& table, const Key& key) const;
  const std::byte* MakeImage(const Key& key, uint64_t state, index::RecordMeta meta, std::span<const std::byte> payload,
                             size_t* bytes);
  coro::Task<Status> UpdateByKey(const Table& table, Key key, std::span<const std::byte> data);
  coro::Task<Status> RemoveByKey(const Table& table, Key key);

  // remote_scan.cc
  coro::Task<Status> ScanRemote(const Table& table, index::ScanRange range, ScanRows* rows, ScanOptions options);
  coro::Task<Status> ScanNodes(const Table& table, index::ScanRange range, ScanRows* rows, ScanOptions options);
  coro::Task<Status> ScanNode(const Table& table, index::ScanRange range, rdma::NodeId node, ScanRows* rows,
                              ScanOptions options);
  coro::Task<Status> ScanByReads(const Table& table, index::ScanRange range, rdma::NodeId node, ScanRows* rows,
                                 ScanOptions options);
  coro::Task<Status> ScanByCalls(const Table& table, index::ScanRange range, rdma::NodeId node, ScanRows* rows,
                                 ScanOptions options);
  Status TakeScanned(const Table& table, rdma::NodeId node, rdma::WireReader& reader, ScanRequest* request,
                     ScanRows* rows, ScanOptions options, bool* more);
  Status AppendImage(const GetRequest& request, rdma::GlobalAddress record, const std::byte* image, ScanRows* rows,
                     ScanOptions options);

  // commit.cc
  coro::Task<Status> ValidateAll();
  Status LockDirect(WriteEntry& entry);
  void ApplyToOwnInsert(WriteEntry& entry);
  Status IndexInsert(WriteEntry& entry);
  void CarryWitnesses(const index::Change& change);
  void CarryManyWitnesses(const index::Change& change);
  void TakeWitness(const index::WordChange& word);
  bool IsOwnLockOf(const ReadEntry& read, uint64_t word) const;
  Status NoteExisting(const WriteEntry& insert, const ReadEntry& existing);
  // AlreadyExists of the insert that met a live record.
  Status Exists() const { return KeyExists(*writes_[exists_].table, writes_[exists_].key); }
  Status ValidateDirect() const;
  void InstallDirect(WriteEntry& entry);
  void ReleaseDirect(WriteEntry& entry);
  Status LockAndIndexDirect();
  Status RemakeInsert(WriteEntry& entry);
  Status PrepareMove(WriteEntry& entry);
  void FinishMove(WriteEntry& entry);
  Status CommitDirect() noexcept;  // an exception in the middle (memory) ends the process
  // Rule 3 of precedence.h.
  bool Writes() const;
  coro::Task<Status> CommitInTurn();
  coro::Async<Status> CommitNow();

  // commit_remote.cc
  coro::Task<Status> CommitMixed();
  coro::Task<Status> LockRemote();
  coro::Task<Status> PrepareRemote();
  coro::Task<Status> ValidateMixed();
  // Other nodes come first; then this one, where own records take the remote path.
  enum class Where : uint8_t { kElsewhere, kHere };
  bool Is(Where where, rdma::NodeId node) const { return (node == session_->self) == (where == Where::kHere); }
  coro::Task<void> InstallRemote(Where where);
  coro::Task<void> ReleaseRemote();
  // Writes the head of a request: the name of `slot`, which is taken if there is none, and a new number.
  void PutCaller(std::span<std::byte> place, std::optional<uint16_t>* slot);
  // For what failed though it must be done (debts.h). After the commit point the transaction waits for it.
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
  bool EncodePrepare(OwnerCall* call);
  Status DecodePrepared(OwnerCall* call, std::span<const std::byte> response);
  Status DecodeMade(const OwnerCall& call, rdma::WireReader& reader);
  bool FinishItemOf(const WriteEntry& entry, bool committed, FinishItem* item) const;
  bool EncodeFinish(OwnerCall* call, bool committed);
  coro::Task<Status> FinishAtOwners(bool committed, Where where);
  void BuildImage(WriteEntry& entry);
  uint64_t DebtDeadline() const;
  coro::Task<Status> InstallAll();

  // decision.cc
  rdma::NodeId OwnerOf(const WriteEntry& entry) const;
  coro::Task<Status> JoinOwners();
  // The connection by which this node is known at the owner now.
  coro::Task<StatusOr<uint64_t>> Join(rdma::NodeId owner);
  // Of the entries at `node`.
  uint64_t ConnectionOf(rdma::NodeId node) const;
  bool NeedsDecider() const;
  void OrderForDecision();
  FinishItem DecidedItemOf(WriteEntry& entry);
  size_t EncodeDecision(std::span<const uint32_t> order, size_t next, rdma::NodeId keeper, bool only_note);
  void OweDecision(rdma::NodeId keeper);
  coro::Task<bool> TellDecision(rdma::NodeId keeper, bool only_note);
  coro::Task<void> Decide();

  // redo.cc
  class RedoScope;  // the commit's stay in its epoch, and its reservation in the log's buffer
  coro::Async<Status> CommitReserved();
  coro::Task<Status> CommitWhenRoom();
  void AppendRedo(log::TransactionPart part, uint64_t id);
  void AddRedo(log::TransactionEncoder* encoder, WriteEntry& entry);
  bool AddSmallRedo(log::TransactionEncoder* encoder, const WriteEntry& entry);
  coro::Task<Status> LogMixed();
  coro::Task<StatusOr<size_t>> LogPart(OwnerCall* call, uint64_t deadline_nanos);
  bool EncodePart(OwnerCall* call, uint64_t id);
  void RaiseInsertVersion(WriteEntry& entry);
  void NoteRemovedVersion(const WriteEntry& entry);
  // READs of the other nodes' epochs, for the validation's batch; then what they brought. FailedPrecondition if there
  // are changes to log, and one of those nodes has a load that is not durable (unsaved_loads.h).
  std::span<const uint64_t> AskForEpochs();
  Status NoteRemoteEpochs(std::span<const uint64_t> words);

  SessionState* session_;
  CommitLog* const log_;    // the session's
  Precedence* precedence_;  // of this node
  PrecedenceClaim* claim_ = nullptr;
  rdma::EpochManager::Participant* const participant_;  // the session's
  uint64_t entered_ = 0;                                // the epoch that it began in
  index::Context context_;
  Status failure_;
  bool active_ = false;
  bool touched_remote_ = false;  // some read or write needs verbs: the commit is a coroutine
  size_t exists_ = kNone;        // number of the entry whose insert met a live record
  size_t redo_bytes_ = 0;        // reserved in the log's buffer; 0: nothing to log
  bool logged_ = false;          // it has changes, and they belong to epoch_
  uint64_t epoch_ = 0;           // the commit's; of a transaction that only reads: the latest it saw
  size_t buffered_redo_ = 0;     // bytes that its changes take in logs, at most
  size_t most_redo_;             // of that
  uint32_t inserts_ = 0;
  uint32_t removals_ = 0;

  std::vector<ReadEntry> reads_;  // records
  std::vector<ReadEntry> witnesses_;
  absl::flat_hash_map<uint64_t, uint32_t> witness_of_;  // by word; of a commit that carries many
  WriteSet writes_;
  Arena arena_;

  // Of commits with other nodes.
  bool asks_for_locks_ = false;
  std::optional<uint16_t> decision_slot_;  // of the name under which its decision is noted
  std::shared_ptr<DebtTicket> ticket_;     // null: nothing is owed after the commit point

  // Scratch, kept for its capacity.
  std::vector<Key> keys_;
  std::vector<index::FindResult> found_;    // by request
  std::vector<index::FindResult> results_;  // by key of one group
  std::vector<uint32_t> pending_;           // requests of ordered tables not looked up yet
  std::vector<uint32_t> group_;             // requests of one table
  index::ScanResult scan_;
  std::vector<rdma::Operation> operations_;
  NeighbourReads words_;                       // of a validation
  std::vector<rdma::GlobalAddress> finished_;  // records of the decision call under way
  rdma::MessageBuffer message_;                // for a request
  std::span<const std::byte> request_;         // the one in message_
  rdma::MessageBuffer response_;
  std::vector<OwnerCall> owner_calls_;  // by node; empty until a commit calls owners
};

}  // namespace gannet::txn
