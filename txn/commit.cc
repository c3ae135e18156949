// The commit protocol.
//
//   lock      every record to update or remove by CAS (state read -> the same, locked by us): that validates it too.
//             Inserts: a locked, absent record enters the index, which changes the witnesses over its key.
//   validate  every other word read (records, witnesses) is as it was.            <- the serialization point lies here
//   install   new payloads and versions; removed keys leave their index first.
//   unlock    is the last store of the install of each record.
//
// Why it is strictly serializable. All writes stay locked from before the validation until they are installed. Take T
// that read x and U that writes x. If U locked x before T validated x, T sees the lock (or the new version) and aborts;
// otherwise T validated before U locked, and T precedes U, whose own validation comes later. Inserts and removals are
// the same with the witness in the place of x: a key enters its index, and bumps the word, before its transaction
// validates and before anything of it is visible; it leaves its index after the validation but before its record is
// unlocked.
//
// Locks are tried once: no waiting, so no deadlock. Everything up to the validation can fail and is undone; nothing
// after it can, except that another node dies: then its part of the outcome is unknown.
//
// With a log (redo.cc): the commit's epoch is read between lock and validate, and the changes are in the log's buffers,
// here and at the other nodes, before anything is installed.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "log/kill_point.h"
#include "rdma/base/check.h"
#include "rdma/versioned.h"
#include "txn/record.h"
#include "txn/redo_scope.h"
#include "txn/transaction_impl.h"
#include "txn/wire.h"

namespace gannet::txn {

using index::PayloadDataOffset;
using index::RecordBytes;

namespace {

Status Conflict() {
  return Status(absl::StatusCode::kAborted, "");
}

bool ChangesRecord(const WriteEntry& entry) {
  return entry.kind == WriteKind::kUpdate || entry.kind == WriteKind::kRemove;
}

bool NeedsMove(const WriteEntry& entry) {
  return entry.kind == WriteKind::kUpdate && entry.payload_bytes != entry.image_payload_bytes &&
         BlockBytesOf(entry.key, entry.payload_bytes) != BlockBytesOf(entry.key, entry.image_payload_bytes);
}

void StorePayloadBytes(std::byte* object, uint32_t payload_bytes) {
  index::RecordMeta meta = index::LoadMeta(object);
  meta.payload_bytes = payload_bytes;
  const uint64_t word = meta.Pack();
  rdma::CopyIn(object, index::kMetaDataOffset, std::as_bytes(std::span(&word, 1)));
}

void ApplyPatches(std::byte* object, const WriteEntry& entry) {
  if (entry.payload_bytes != entry.image_payload_bytes) StorePayloadBytes(object, entry.payload_bytes);
  for (const Patch* patch = entry.patches; patch != nullptr; patch = patch->next) {
    rdma::CopyIn(object, PayloadDataOffset(entry.key.size()) + patch->offset, {patch->data, patch->size});
  }
}

}  // namespace

// ---------------------------------------------------------------------------------------------------------------------
// Records of this node, by its CPU.

Status TransactionImpl::LockDirect(WriteEntry& entry) {
  const uint64_t found = CompareAndSwapWord(entry.direct, entry.seen, Locked(entry.seen, session_->owner_bits));
  if (found != entry.seen) [[unlikely]]
    return LockedTooLong(found);
  entry.locked = true;
  return absl::OkStatus();
}

void TransactionImpl::CarryWitnesses(const index::Change& change) {
  if (change.before.word.is_null() || witnesses_.empty()) return;
  bool held = false;
  for (ReadEntry& witness : witnesses_) {
    if (witness.word != change.before.word || witness.seen != change.before.seen) continue;
    witness.seen = change.after;
    held = true;
  }
  if (held && !change.split_to.word.is_null()) witnesses_.push_back({change.split_to.word, change.split_to.seen});
}

Status TransactionImpl::IndexInsert(WriteEntry& entry) {
  rdma::GlobalAddress existing;
  const StatusOr<index::Change> change =
      entry.table->local_index().Insert(context_, entry.key, entry.record, &existing);
  if (change.ok()) [[likely]] {
    entry.indexed = true;
    if (log_ != nullptr) RaiseInsertVersion(entry);
    CarryWitnesses(*change);
    return absl::OkStatus();
  }
  if (!absl::IsAlreadyExists(change.status())) return change.status();
  return NoteExisting({existing, LoadWord(Direct(existing))});
}

// An insert met `existing`. If that is a committed record, the insert fails, provided that the rest validates.
Status TransactionImpl::NoteExisting(const ReadEntry& existing) {
  exists_ = true;
  const int own = writes_.FindRecord(existing.word);
  if (own >= 0 && writes_[own].kind == WriteKind::kInsert) return absl::OkStatus();  // inserted twice by us
  if (own >= 0 && writes_[own].locked && existing.seen == Locked(writes_[own].seen, session_->owner_bits)) {
    return absl::OkStatus();  // inserted beside an update of the same key
  }
  if (IsLocked(existing.seen) || IsAbsent(existing.seen)) return LockedTooLong(existing.seen);
  reads_.push_back(existing);
  return absl::OkStatus();
}

// A record that this transaction read and then locked itself still is what it read. (The owner bits alone do not tell:
// other transactions of this worker share them.)
bool TransactionImpl::IsOwnLockOf(const ReadEntry& read, uint64_t word) const {
  if (word != Locked(read.seen, session_->owner_bits)) return false;
  const int own = writes_.FindRecord(read.word);
  return own >= 0 && writes_[own].locked;
}

Status TransactionImpl::ValidateDirect() const {
  for (const ReadEntry& entry : reads_) {
    const uint64_t word = LoadWord(Direct(entry.word));
    if (word != entry.seen && !IsOwnLockOf(entry, word)) return Conflict();
  }
  for (const ReadEntry& entry : witnesses_) {
    if (LoadWord(Direct(entry.word)) != entry.seen) return Conflict();
  }
  return absl::OkStatus();
}

Status TransactionImpl::PrepareMove(WriteEntry& entry) {
  std::span<std::byte> payload(arena_.Allocate(entry.payload_bytes), entry.payload_bytes);
  CopyOwnPayload(entry, 0, payload);
  StatusOr<NewRecord> made = MakeLockedRecord(*session_->slab, entry.table->id(), entry.key, payload,
                                              session_->owner_bits, VersionOf(entry.seen));
  if (!made.ok()) return made.status();
  entry.moved_to = session_->db->node->AddressOf(made->block);
  entry.moved_state = made->state;
  return absl::OkStatus();
}

void TransactionImpl::FinishMove(WriteEntry& entry) {
  const Status replaced = entry.table->local_index().Replace(entry.key, entry.record, entry.moved_to);
  GANNET_CHECK(replaced.ok(), "%s is locked but not in its index: %s", entry.record.ToString(), replaced.ToString());
  StoreWord(Direct(entry.moved_to), NextState(entry.moved_state, false));
  MarkAbsent(entry.direct, RecordLines(entry.key, entry.image_payload_bytes), entry.seen);
  participant_->Retire(entry.direct, RecordBytes(entry.key.size(), entry.image_payload_bytes), session_->slab.get());
  session_->live_bytes->Add(entry.table->id(), BlockBytesOf(entry.key, entry.payload_bytes) -
                                                   BlockBytesOf(entry.key, entry.image_payload_bytes));
  entry.moved_to = {};
  entry.locked = false;
}

void TransactionImpl::InstallDirect(WriteEntry& entry) {
  if (!entry.moved_to.is_null()) return FinishMove(entry);
  const size_t lines = RecordLines(entry.key, entry.payload_bytes);
  const int64_t block_bytes = BlockBytesOf(entry.key, entry.image_payload_bytes);
  if (entry.kind == WriteKind::kUpdate) {
    rdma::BeginWrite(entry.direct, lines);
    ApplyPatches(entry.direct, entry);
    rdma::EndWrite(entry.direct, lines, NextState(entry.seen, false));
  } else if (entry.kind == WriteKind::kInsert && !entry.removed) {
    if (entry.patches == nullptr) {
      StoreWord(entry.direct, NextState(entry.seen, false));
    } else {
      rdma::BeginWrite(entry.direct, lines);
      ApplyPatches(entry.direct, entry);
      rdma::EndWrite(entry.direct, lines, NextState(entry.seen, false));
    }
    session_->live_bytes->Add(entry.table->id(), block_bytes);
  } else {  // a removal, of an old record or of an own insert
    if (entry.kind == WriteKind::kRemove) {
      session_->live_bytes->Add(entry.table->id(), -block_bytes);
      if (log_ != nullptr) NoteRemovedVersion(entry);
    }
    const StatusOr<index::Change> change = entry.table->local_index().Remove(context_, entry.key, entry.record);
    GANNET_CHECK(change.ok(), "%s is locked but not in its index: %s", entry.record.ToString(),
                 change.status().ToString());
    MarkAbsent(entry.direct, RecordLines(entry.key, entry.image_payload_bytes), entry.seen);
    participant_->Retire(entry.direct, RecordBytes(entry.key.size(), entry.image_payload_bytes), session_->slab.get());
  }
  entry.locked = false;
}

void TransactionImpl::ReleaseDirect(WriteEntry& entry) {
  if (!entry.is_direct()) return;
  if (!entry.moved_to.is_null()) {  // nobody could reach it
    std::byte* block = Direct(entry.moved_to);
    MarkAbsent(block, RecordLines(entry.key, entry.payload_bytes), entry.moved_state);
    session_->slab->Free(block, RecordBytes(entry.key.size(), entry.payload_bytes));
    entry.moved_to = {};
  }
  if (!entry.locked) return;
  entry.locked = false;
  if (entry.kind != WriteKind::kInsert) {
    StoreWord(entry.direct, entry.seen);
    return;
  }
  const size_t bytes = RecordBytes(entry.key.size(), entry.image_payload_bytes);
  if (!entry.indexed) {
    MarkAbsent(entry.direct, RecordLines(entry.key, entry.image_payload_bytes), entry.seen);
    session_->slab->Free(entry.direct, bytes);
    return;
  }
  const StatusOr<index::Change> change = entry.table->local_index().Remove(context_, entry.key, entry.record);
  GANNET_CHECK(change.ok(), "%s was inserted but is not in its index: %s", entry.record.ToString(),
               change.status().ToString());
  MarkAbsent(entry.direct, RecordLines(entry.key, entry.image_payload_bytes), entry.seen);
  participant_->Retire(entry.direct, bytes, session_->slab.get());
}

Status TransactionImpl::LockAndIndexDirect() {
  for (WriteEntry& entry : writes_.entries()) {
    if (entry.kind == WriteKind::kNone) {
      reads_.push_back({entry.record, entry.seen});
      continue;
    }
    if (!entry.is_direct()) continue;
    if (ChangesRecord(entry)) GANNET_RETURN_IF_ERROR(LockDirect(entry));
    if (entry.kind == WriteKind::kInsert && entry.payload_bytes != entry.image_payload_bytes) [[unlikely]] {
      GANNET_RETURN_IF_ERROR(RemakeInsert(entry));
    }
    if (NeedsMove(entry)) [[unlikely]]
      GANNET_RETURN_IF_ERROR(PrepareMove(entry));
  }
  for (WriteEntry& entry : writes_.entries()) {
    if (entry.kind == WriteKind::kInsert && entry.is_direct()) GANNET_RETURN_IF_ERROR(IndexInsert(entry));
  }
  return absl::OkStatus();
}

// An own insert that was resized: a new block, which nobody has seen either.
Status TransactionImpl::RemakeInsert(WriteEntry& entry) {
  GANNET_RETURN_IF_ERROR(PrepareMove(entry));
  MarkAbsent(entry.direct, RecordLines(entry.key, entry.image_payload_bytes), entry.seen);
  session_->slab->Free(entry.direct, RecordBytes(entry.key.size(), entry.image_payload_bytes));
  writes_.SetRecord(static_cast<size_t>(&entry - writes_.entries().data()), entry.moved_to);
  entry.direct = Direct(entry.moved_to);
  entry.seen = entry.moved_state;
  entry.moved_to = {};
  entry.image_payload_bytes = entry.payload_bytes;
  entry.patches = entry.last_patch = nullptr;
  return absl::OkStatus();
}

Status TransactionImpl::CommitDirect() {
  Status status = LockAndIndexDirect();
  const RedoScope redo(this);
  if (status.ok()) status = ValidateDirect();
  if (status.ok() && exists_) status = Status(absl::StatusCode::kAlreadyExists, "the key of an insert exists");
  if (!status.ok()) [[unlikely]] {
    for (WriteEntry& entry : writes_.entries()) ReleaseDirect(entry);
    return status;
  }
  if (redo_bytes_ > 0) AppendRedo(log::TransactionPart::kWhole, 0);
  for (WriteEntry& entry : writes_.entries()) {
    if (entry.kind != WriteKind::kNone) InstallDirect(entry);
  }
  log::MayDieHere(log::KillPoint::kCommitInstalled);
  return absl::OkStatus();
}

// ---------------------------------------------------------------------------------------------------------------------
// Records of several nodes.

coro::Task<Status> TransactionImpl::LockRemote() {
  operations_.clear();
  for (WriteEntry& entry : writes_.entries()) {
    if (entry.is_direct() || !ChangesRecord(entry)) continue;
    operations_.push_back(
        rdma::Operation::CompareAndSwap(entry.record, entry.seen, Locked(entry.seen, session_->owner_bits)));
  }
  if (operations_.empty()) co_return absl::OkStatus();
  Status status = co_await session_->channel->Post(operations_);
  // Also after an error: whatever was locked is noted, so that it will be unlocked.
  Status conflict;
  size_t i = 0;
  for (WriteEntry& entry : writes_.entries()) {
    if (entry.is_direct() || !ChangesRecord(entry)) continue;
    const rdma::Operation& operation = operations_[i++];
    entry.locked = operation.result == entry.seen;
    if (!entry.locked && status.ok() && conflict.ok()) conflict = LockedTooLong(operation.result);
  }
  co_return status.ok() ? conflict : status;
}

// Placeholders for inserts, and new places for records that outgrow theirs, at their owners: as few calls as fit.
coro::Task<Status> TransactionImpl::PrepareRemote() {
  const int nodes = session_->db->fabric->num_nodes();
  for (rdma::NodeId node = 0; node < nodes; ++node) {
    for (size_t next = 0; next < writes_.size();) {
      prepared_.clear();
      next = EncodePrepare(node, next);
      if (prepared_.empty()) break;
      response_.resize(rdma::kMaxMessageBytes);
      StatusOr<size_t> size =
          co_await session_->channel->Call(node, kTxnPrepare, message_, response_, session_->db->options.call_timeout);
      if (!size.ok()) co_return size.status();
      Status status = DecodePrepared(node, std::span<const std::byte>(response_).first(*size));
      if (!status.ok()) co_return status;
    }
  }
  co_return absl::OkStatus();
}

// Writes the request for entries [from, ...) of `node` that fit one message and notes them in prepared_; returns where
// to go on.
size_t TransactionImpl::EncodePrepare(rdma::NodeId node, size_t from) {
  message_.resize(rdma::kMaxMessageBytes);
  rdma::WireWriter writer(message_);
  writer.PutU64(session_->owner_bits);
  const std::span<std::byte> count = writer.Reserve(sizeof(uint16_t));
  size_t i = from;
  for (; i < writes_.size(); ++i) {
    WriteEntry& entry = writes_[i];
    const bool move = NeedsMove(entry);
    if (entry.is_direct() || (entry.kind != WriteKind::kInsert && !move)) continue;
    if (entry.table->OwnerOf(entry.key, session_->self) != node) continue;
    const std::span<std::byte> payload(arena_.Allocate(entry.payload_bytes), entry.payload_bytes);
    CopyOwnPayload(entry, 0, payload);
    constexpr size_t kItemOverhead = 16 + index::kMaxKeyBytes;
    constexpr size_t kPreparedBytes = 64;  // of the response, per item
    if (writer.room() < payload.size() + kItemOverhead ||
        (prepared_.size() + 1) * kPreparedBytes > rdma::kMaxMessageBytes) {
      break;
    }
    txn::Put(writer, PrepareItem{entry.table->id(), entry.key, payload, move, move ? VersionOf(entry.seen) : 0});
    prepared_.push_back(static_cast<uint32_t>(i));
  }
  const auto n = static_cast<uint16_t>(prepared_.size());
  std::memcpy(count.data(), &n, sizeof n);
  message_.resize(writer.size());
  return i;
}

Status TransactionImpl::DecodePrepared(rdma::NodeId node, std::span<const std::byte> response) {
  rdma::WireReader reader(response);
  const auto outcome = static_cast<PrepareOutcome>(reader.GetU8());
  if (outcome == PrepareOutcome::kExists) {
    const index::Witness existing = GetWitness(reader);
    GANNET_RETURN_IF_ERROR(reader.Finish());
    return NoteExisting({existing.word, existing.seen});
  }
  if (outcome != PrepareOutcome::kPrepared) return Conflict();
  for (uint32_t i : prepared_) {
    WriteEntry& entry = writes_[i];
    Prepared prepared;
    if (!txn::Get(reader, &prepared) || prepared.record.node() != node) {
      return absl::InternalError(absl::StrCat("node ", node, " answered a prepare with a malformed message"));
    }
    if (entry.kind == WriteKind::kInsert) {
      writes_.SetRecord(i, prepared.record);
      entry.seen = prepared.state;
      entry.locked = entry.indexed = true;
    } else {
      entry.moved_to = prepared.record;
      entry.moved_state = prepared.state;
    }
    CarryWitnesses(prepared.change);
  }
  return reader.Finish();
}

coro::Task<Status> TransactionImpl::ValidateMixed() {
  operations_.clear();
  const size_t n = reads_.size() + witnesses_.size();
  auto* words = reinterpret_cast<uint64_t*>(arena_.Allocate(n * sizeof(uint64_t)));
  const auto nth = [&](size_t i) -> const ReadEntry& {
    return i < reads_.size() ? reads_[i] : witnesses_[i - reads_.size()];
  };
  const auto is_direct = [&](const ReadEntry& entry) {
    return session_->direct && entry.word.node() == session_->self;
  };
  for (size_t i = 0; i < n; ++i) {
    if (is_direct(nth(i))) continue;
    operations_.push_back(rdma::Operation::Read(nth(i).word, &words[i], sizeof(uint64_t)));
  }
  const std::span<const uint64_t> epochs = AskForEpochs();
  if (!operations_.empty()) {
    Status status = co_await session_->channel->Post(operations_);
    if (!status.ok()) co_return status;
  }
  NoteRemoteEpochs(epochs);
  for (size_t i = 0; i < n; ++i) {
    const ReadEntry& entry = nth(i);
    const uint64_t word = is_direct(entry) ? LoadWord(Direct(entry.word)) : words[i];
    if (word != entry.seen && !(i < reads_.size() && IsOwnLockOf(entry, word))) co_return Conflict();
  }
  co_return absl::OkStatus();
}

// The whole record as it will be, in the image that the READ left in the arena.
void TransactionImpl::BuildImage(WriteEntry& entry) {
  const size_t lines = RecordLines(entry.key, entry.payload_bytes);
  const size_t old_lines = RecordLines(entry.key, entry.image_payload_bytes);
  if (lines > old_lines) {  // grows within its block
    std::byte* larger = arena_.Allocate(lines * kLineBytes);
    std::memset(larger, 0, lines * kLineBytes);
    std::memcpy(larger, entry.image, old_lines * kLineBytes);
    entry.image = larger;
  }
  ApplyPatches(entry.image, entry);
  // One line is written at one instant: the lock may go with it. Of several lines, the first must not be seen unlocked
  // before the others are there, so it stays locked until the WRITE after.
  const uint64_t next = NextState(entry.seen, false);
  rdma::StampImage(entry.image, lines, lines == 1 ? next : Locked(entry.seen, session_->owner_bits), next);
}

// Updates and the unlocking of inserts are one-sided; one doorbell for all nodes.
coro::Task<Status> TransactionImpl::InstallRemote() {
  operations_.clear();
  const auto write_word = [&](rdma::GlobalAddress word, uint64_t value) {
    std::byte* source = arena_.Allocate(sizeof value);
    std::memcpy(source, &value, sizeof value);
    operations_.push_back(rdma::Operation::Write(source, word, sizeof value));
  };
  for (WriteEntry& entry : writes_.entries()) {
    if (entry.is_direct()) continue;
    if (entry.kind == WriteKind::kInsert && !entry.removed) {
      write_word(entry.record, NextState(entry.seen, false));
      entry.locked = false;
    } else if (entry.kind == WriteKind::kUpdate && entry.moved_to.is_null()) {
      BuildImage(entry);
      const size_t lines = RecordLines(entry.key, entry.payload_bytes);
      operations_.push_back(
          rdma::Operation::Write(entry.image, entry.record, static_cast<uint32_t>(lines * kLineBytes)));
      if (lines > 1) write_word(entry.record, NextState(entry.seen, false));
      entry.locked = false;
    }
  }
  if (operations_.empty()) co_return absl::OkStatus();
  co_return co_await session_->channel->Post(operations_);
}

// What `entry` needs from its owner to end. Committed: removals, own inserts that were removed again, moves. Aborted:
// placeholders are unmade.
bool TransactionImpl::FinishItemOf(const WriteEntry& entry, bool committed, FinishItem* item) const {
  if (entry.is_direct()) return false;
  *item = {.kind = FinishKind::kRemove,
           .table = entry.table->id(),
           .key = entry.key,
           .record = entry.record,
           .state = entry.seen,
           .moved_to = entry.moved_to,
           .moved_state = entry.moved_state};
  if (!entry.moved_to.is_null()) {
    if (committed) {
      item->kind = FinishKind::kReplace;
    } else {
      item->kind = FinishKind::kUnmake;
      item->record = entry.moved_to;
      item->state = entry.moved_state;
    }
    return true;
  }
  if (entry.kind == WriteKind::kInsert) return entry.locked && (!committed || entry.removed);
  return entry.kind == WriteKind::kRemove && committed;
}

coro::Task<Status> TransactionImpl::FinishAtOwners(bool committed) {
  Status first_error;
  const int nodes = session_->db->fabric->num_nodes();
  for (rdma::NodeId node = 0; node < nodes; ++node) {
    for (size_t next = 0; next < writes_.size();) {
      message_.resize(rdma::kMaxMessageBytes);
      rdma::WireWriter writer(message_);
      writer.PutU64(session_->owner_bits);
      const std::span<std::byte> count = writer.Reserve(sizeof(uint16_t));
      uint16_t n = 0;
      constexpr size_t kItemBytes = 64 + index::kMaxKeyBytes;
      for (; next < writes_.size() && writer.room() >= kItemBytes; ++next) {
        FinishItem item;
        if (!FinishItemOf(writes_[next], committed, &item) || item.record.node() != node) continue;
        txn::Put(writer, item);
        if (committed || writes_[next].kind == WriteKind::kInsert) writes_[next].locked = false;
        ++n;
      }
      if (n == 0) break;
      std::memcpy(count.data(), &n, sizeof n);
      message_.resize(writer.size());
      StatusOr<size_t> size =
          co_await session_->channel->Call(node, kTxnFinish, message_, {}, session_->db->options.call_timeout);
      if (!size.ok() && first_error.ok()) first_error = size.status();
    }
  }
  co_return first_error;
}

coro::Task<void> TransactionImpl::ReleaseRemote() {
  // Errors are for nodes that died, and what was locked there died with them.
  Status ignored = co_await FinishAtOwners(/*committed=*/false);
  operations_.clear();
  for (WriteEntry& entry : writes_.entries()) {
    if (entry.is_direct() || !entry.locked || !ChangesRecord(entry)) continue;
    operations_.push_back(rdma::Operation::Write(&entry.seen, entry.record, sizeof entry.seen));
    entry.locked = false;
  }
  if (!operations_.empty()) ignored = co_await session_->channel->Post(operations_);
}

coro::Task<Status> TransactionImpl::CommitMixed() {
  Status status = LockAndIndexDirect();
  if (status.ok()) status = co_await LockRemote();
  if (status.ok()) status = co_await PrepareRemote();
  const RedoScope redo(this);
  if (status.ok()) status = co_await ValidateMixed();
  if (status.ok() && exists_) status = Status(absl::StatusCode::kAlreadyExists, "the key of an insert exists");
  if (status.ok() && redo_bytes_ > 0) status = co_await LogMixed();
  if (!status.ok()) {
    for (WriteEntry& entry : writes_.entries()) ReleaseDirect(entry);
    co_await ReleaseRemote();
    co_return status;
  }
  for (WriteEntry& entry : writes_.entries()) {
    if (entry.is_direct() && entry.kind != WriteKind::kNone) InstallDirect(entry);
  }
  Status installed = co_await InstallRemote();
  Status finished = co_await FinishAtOwners(/*committed=*/true);
  if (installed.ok()) installed = finished;
  if (!installed.ok()) {
    co_return absl::UnknownError(
        absl::StrCat("the transaction passed its commit point, but a node did not take its part: ",
                     absl::string_view(installed.message())));
  }
  co_return absl::OkStatus();
}

coro::Async<Status> TransactionImpl::Commit() {
  if (log_ == nullptr) return CommitReserved();
  redo_bytes_ = RedoBytes();
  if (redo_bytes_ > 0) {
    if (session_->db->load_unsaved.load(std::memory_order_relaxed)) [[unlikely]] {
      redo_bytes_ = 0;
      return absl::FailedPreconditionError(
          "a table was filled by BulkLoader, which is not logged: call Database::Checkpoint, then commit changes");
    }
    bool wait = false;
    Status reserved = log_->Reserve(redo_bytes_, &wait);
    if (wait) return CommitWhenRoom();
    if (!reserved.ok()) {
      redo_bytes_ = 0;
      return reserved;
    }
  }
  return CommitReserved();
}

coro::Async<Status> TransactionImpl::CommitReserved() {
  if (touched_remote_) return CommitMixed();
  return CommitDirect();
}

coro::Async<Status> TransactionImpl::Validate() {
  // What was got for update was read too.
  for (const WriteEntry& entry : writes_.entries()) {
    if (entry.kind != WriteKind::kInsert) reads_.push_back({entry.record, entry.seen});
  }
  if (touched_remote_) return ValidateMixed();
  return ValidateDirect();
}

}  // namespace gannet::txn
