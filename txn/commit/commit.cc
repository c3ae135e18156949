// The commit protocol.
//
//   lock      every record to update or remove by CAS (state read -> the same, locked by us): this validates it, too.
//             Inserts: a locked, absent record enters the index, which changes the witnesses over its key.
//   validate  every other word that was read (records, witnesses) is unchanged.   <- the serialization point lies here
//   install   new payloads and versions; removed keys leave their index first.
//   unlock    the last store of each record's install.
//
// Why it is strictly serializable. All writes stay locked from before the validation until they are installed. Let T
// read x and U write x. If U locked x before T validated x, T sees the lock (or the new version) and aborts. Otherwise
// T validated before U locked, and T precedes U, whose own validation comes later. For inserts and removals the witness
// takes the place of x: a key enters its index, and changes the word, before its transaction validates and before
// anything of it is visible; it leaves its index after the validation but before its record is unlocked.
//
// A transaction that wrote nothing and read all at one moment needs no validation: its place is at that moment
// (ReadSet::is_snapshot). A writer whose lock was not there then validates later, and one whose new version was seen
// had validated before.
//
// Locks are tried once: no waiting, so no deadlock. Everything up to the validation can fail and is undone. Nothing
// after it can, except that another node dies: then its part of the outcome is unknown. (commit_remote.cc has the case
// of verbs and calls that fail although the node lives.)
//
// With a log (redo.cc): the commit's epoch is read between lock and validate, and the changes are in the log's buffers,
// here and at the other nodes, before anything is installed.
#include "txn/commit/commit.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/mutant.h"
#include "base/sometimes.h"
#include "base/thread.h"
#include "index/witness_word.h"
#include "log/kill_point.h"
#include "rdma/versioned.h"
#include "txn/commit/commit_internal.h"
#include "txn/commit/redo_scope.h"
#include "txn/node/index_damage.h"
#include "txn/peer/wire.h"
#include "txn/record/record.h"
#include "txn/session/session_state.h"

namespace gannet::txn {

using index::RecordBytes;

// ---------------------------------------------------------------------------------------------------------------------
// Records of this node, by its CPU.

Status Commit::LockDirect(WriteEntry& entry) {
  const uint64_t found = CompareAndSwapWord(entry.direct, entry.seen, Locked(entry.seen, session_->owner_bits));
  if (found != entry.seen) [[unlikely]] {
    Sometimes<"commit: a record to write is locked or was changed">();
    session_->conflict.Note(*entry.table, entry.key);
    return LockedTooLong(found);
  }
  entry.locked = true;
  return absl::OkStatus();
}

// Applies the transaction's later changes to its own insert. This comes before any other transaction can find the
// record, and uses a new version: a reader that knows the block from earlier (a location cache) may have READ lines of
// what Insert put there.
void Commit::ApplyToOwnInsert(WriteEntry& entry) {
  const size_t lines = RecordLines(entry.key, entry.payload_bytes);
  rdma::BeginWrite(entry.direct, lines);
  ApplyPatches(entry.direct, entry);
  entry.seen = RaiseLockedVersion(entry.direct, lines, entry.seen, VersionOf(entry.seen) + 1, session_->owner_bits);
}

Status Commit::IndexInsert(WriteEntry& entry) {
  if (entry.patches != nullptr) [[unlikely]]
    ApplyToOwnInsert(entry);
  rdma::GlobalAddress existing;
  const StatusOr<index::Change> change =
      entry.table->local_index().Insert(session_->context, entry.key, entry.record, &existing);
  if (change.ok()) [[likely]] {
    entry.indexed = true;
    RaiseInsertVersion(entry);
    reads_.Carry(*change);
    return absl::OkStatus();
  }
  if (!absl::IsAlreadyExists(change.status())) return change.status();
  GANNET_RETURN_IF_ERROR(CheckLead(*session_->local, *entry.table, entry.key, existing));
  return NoteExisting(entry, {existing, LoadWord(session_->Direct(existing))});
}

// `insert` met `existing`. If that is a committed record, the insert fails, provided that the rest validates.
Status Commit::NoteExisting(const WriteEntry& insert, const ReadEntry& existing) {
  if (exists_ == kNone) exists_ = static_cast<size_t>(&insert - writes_.entries().data());
  const int own = writes_.FindRecord(existing.word);
  if (own >= 0 && writes_[own].locked && existing.seen == Locked(writes_[own].seen, session_->owner_bits)) {
    Sometimes<"commit: a key is inserted that the transaction updates, too">();
    return absl::OkStatus();
  }
  if (IsLocked(existing.seen) || IsAbsent(existing.seen)) {
    Sometimes<"commit: an insert meets a record that is locked or absent">();
    session_->conflict.Note(*insert.table, insert.key);
    return LockedTooLong(existing.seen);
  }
  Sometimes<"commit: an insert meets a committed record">();
  reads_.AddRecord(existing.word, existing.seen);
  return absl::OkStatus();
}

// True if a record that this transaction read and then locked itself is unchanged. (The owner bits alone do not show
// this, because other transactions of this worker share them.)
bool Commit::IsOwnLockOf(const ReadEntry& read, uint64_t word) const {
  if (word != Locked(read.seen, session_->owner_bits)) return false;
  const int own = writes_.FindRecord(read.word);
  return own >= 0 && writes_[own].locked;
}

// A transaction that writes, or has read for update, may have read records before it added them to its read set.
std::span<const ReadEntry> Commit::RecordsInDoubt() const {
  const std::span<const ReadEntry> all = reads_.records();
  if (!writes_.entries().empty()) return all;
  return all.first(reads_.calm().RecordsInDoubt(session_->change_counters, all.size()));
}

Status Commit::ValidateDirect() const {
  PreemptionPoint();
  for (const ReadEntry& entry : RecordsInDoubt()) {
    const uint64_t word = LoadWord(session_->Direct(entry.word));
    if (GANNET_MUTANT(kSkipValidation)) continue;
    if (word != entry.seen && !IsOwnLockOf(entry, word)) {
      Sometimes<"commit: a record that was read has changed">();
      session_->conflict.NoteRecord(*session_->local, session_->Direct(entry.word));
      return ConflictAt(word);
    }
  }
  PreemptionPoint();
  for (const ReadEntry& entry : reads_.witnesses()) {
    if (GANNET_MUTANT(kSkipWitness)) break;
    if (index::IsSameSet(LoadWord(session_->Direct(entry.word)), entry.seen)) [[likely]]
      continue;
    Sometimes<"commit: a witness has changed">();
    return Conflict(AbortCause::kIndex);
  }
  return absl::OkStatus();
}

Status Commit::PrepareMove(WriteEntry& entry) {
  std::span<std::byte> payload(writes_.arena().Allocate(entry.payload_bytes), entry.payload_bytes);
  writes_.CopyPayload(entry, 0, payload);
  StatusOr<NewRecord> made = MakeLockedRecord(*session_->slab, entry.table->id(), entry.key, payload,
                                              session_->owner_bits, VersionOf(entry.seen));
  if (!made.ok()) return made.status();
  entry.moved_to = session_->local->node.AddressOf(made->block);
  entry.moved_state = made->state;
  return absl::OkStatus();
}

void Commit::FinishMove(WriteEntry& entry) {
  Sometimes<"commit: a record moves to a block of another size">();
  // Before the index no longer leads there: lent_records.h.
  const int64_t old_bytes =
      session_->local->lent_records.Drop(entry.record) ? 0 : BlockBytesOf(entry.key, entry.image_payload_bytes);
  const Status replaced = entry.table->local_index().Replace(entry.key, entry.record, entry.moved_to);
  const bool has_left = session_->local->index_damage.HasLeft(*entry.table, entry.key, entry.record, replaced);
  std::byte* const moved = session_->Direct(entry.moved_to);
  int64_t new_bytes = 0;
  if (replaced.ok()) [[likely]] {
    StoreWord(moved, NextState(entry.moved_state, false));
    new_bytes = BlockBytesOf(entry.key, entry.payload_bytes);
  } else {  // the row is lost: nothing leads to its new place
    MarkAbsent(moved, RecordLines(entry.key, entry.payload_bytes), entry.moved_state);
    session_->participant->Retire(moved, RecordBytes(entry.key.size(), entry.payload_bytes), session_->slab.get());
  }
  MarkAbsent(entry.direct, RecordLines(entry.key, entry.image_payload_bytes), entry.seen);
  if (has_left) {
    session_->participant->Retire(entry.direct, RecordBytes(entry.key.size(), entry.image_payload_bytes),
                                  session_->slab.get());
  }
  session_->live_bytes->Add(entry.table->id(), new_bytes - old_bytes);
  entry.moved_to = {};
  entry.locked = false;
}

void Commit::InstallDirect(WriteEntry& entry) {
  if (!entry.moved_to.is_null()) return FinishMove(entry);
  const size_t lines = RecordLines(entry.key, entry.payload_bytes);
  const int64_t block_bytes = BlockBytesOf(entry.key, entry.image_payload_bytes);
  if (entry.kind == WriteKind::kUpdate) {
    if (GANNET_MUTANT(kUnlockBeforeInstall)) StoreWord(entry.direct, NextState(entry.seen, false));
    rdma::BeginWrite(entry.direct, lines);
    ApplyPatches(entry.direct, entry);
    rdma::EndWrite(entry.direct, lines, NextState(entry.seen, false));
  } else if (entry.kind == WriteKind::kInsert && !entry.removed) {
    StoreWord(entry.direct, NextState(entry.seen, false));
    session_->live_bytes->Add(entry.table->id(), block_bytes);
  } else {  // a removal, of an old record or of an own insert
    if (entry.kind == WriteKind::kRemove) {
      // If the client that borrowed the block has not told of it yet, it was not counted.
      if (!session_->local->lent_records.Drop(entry.record)) session_->live_bytes->Add(entry.table->id(), -block_bytes);
      NoteRemovedVersion(entry);
    }
    const StatusOr<index::Change> change =
        entry.table->local_index().Remove(session_->context, entry.key, entry.record);
    const bool has_left = session_->local->index_damage.HasLeft(*entry.table, entry.key, entry.record, change.status());
    MarkAbsent(entry.direct, RecordLines(entry.key, entry.image_payload_bytes), entry.seen);
    entry.locked = false;
    if (!has_left) [[unlikely]]
      return;
    if (GANNET_MUTANT(kReuseWithoutGrace))
      session_->slab->Free(entry.direct, RecordBytes(entry.key.size(), entry.image_payload_bytes));
    else
      session_->participant->Retire(entry.direct, RecordBytes(entry.key.size(), entry.image_payload_bytes),
                                    session_->slab.get());
  }
  entry.locked = false;
}

void ReleaseDirect(SessionState& session, WriteEntry& entry) {
  if (!entry.is_direct()) return;
  if (!entry.moved_to.is_null()) {  // no other transaction could reach it
    Sometimes<"commit: an abort gives back the block that a record was to move to">();
    std::byte* block = session.Direct(entry.moved_to);
    MarkAbsent(block, RecordLines(entry.key, entry.payload_bytes), entry.moved_state);
    session.slab->Free(block, RecordBytes(entry.key.size(), entry.payload_bytes));
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
    session.slab->Free(entry.direct, bytes);
    return;
  }
  Sometimes<"commit: an abort takes an insert out of its index">();
  const StatusOr<index::Change> change = entry.table->local_index().Remove(session.context, entry.key, entry.record);
  const bool has_left = session.local->index_damage.HasLeft(*entry.table, entry.key, entry.record, change.status());
  MarkAbsent(entry.direct, RecordLines(entry.key, entry.image_payload_bytes), entry.seen);
  if (has_left) session.participant->Retire(entry.direct, bytes, session.slab.get());
}

Status Commit::LockAndIndexDirect() {
  for (WriteEntry& entry : writes_.entries()) {
    if (entry.kind == WriteKind::kNone) {
      reads_.AddRecord(entry.record, entry.seen);
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

// For an own insert that was resized: makes a new block, which no other transaction has seen either.
Status Commit::RemakeInsert(WriteEntry& entry) {
  Sometimes<"commit: an own insert was resized">();
  GANNET_RETURN_IF_ERROR(PrepareMove(entry));
  MarkAbsent(entry.direct, RecordLines(entry.key, entry.image_payload_bytes), entry.seen);
  session_->slab->Free(entry.direct, RecordBytes(entry.key.size(), entry.image_payload_bytes));
  writes_.SetRecord(static_cast<size_t>(&entry - writes_.entries().data()), entry.moved_to);
  entry.direct = session_->Direct(entry.moved_to);
  entry.seen = entry.moved_state;
  entry.moved_to = {};
  entry.image_payload_bytes = entry.payload_bytes;
  entry.patches = entry.last_patch = nullptr;
  entry.patch_count = 0;
  return absl::OkStatus();
}

Status Commit::CommitDirect() noexcept {
  const ChangingRecords changing(writes_.entries().empty() ? nullptr : session_->change_counter);
  Status status = LockAndIndexDirect();
  RedoScope redo(this);
  redo.Enter();
  if (status.ok()) status = ValidateDirect();
  if (status.ok() && exists_ != kNone) status = Exists();
  if (redo_bytes_ > 0 && log_->any_unsaved_load() && status.ok()) [[unlikely]]
    status = UnsavedLoads::Refusal(session_->self);
  if (!status.ok()) [[unlikely]] {
    for (WriteEntry& entry : writes_.entries()) ReleaseDirect(*session_, entry);
    logged_ = false;  // it only read
    epoch_ = 0;
    return status;
  }
  if (redo_bytes_ > 0) AppendRedo(log::TransactionPart::kWhole, 0);
  for (WriteEntry& entry : writes_.entries()) {
    if (entry.kind != WriteKind::kNone) InstallDirect(entry);
  }
  log::MayDieHere(log::KillPoint::kCommitInstalled);
  return absl::OkStatus();
}

bool Commit::Writes() const {
  return std::any_of(writes_.entries().begin(), writes_.entries().end(),
                     [](const WriteEntry& entry) { return entry.kind != WriteKind::kNone; });
}

// Waits while it holds nothing that others wait for: no lock, no place in an index, no room in the log.
coro::Task<Status> Commit::RunInTurn() {
  constexpr uint64_t kLookEveryNanos = 200'000;
  Precedence* const precedence = session_->precedence;
  const uint64_t start = NowNanos();
  uint64_t now = start;
  while (now - start < precedence->limit_nanos() && precedence->MustWait(claim_, now)) {
    // A thread with nothing else to do leaves its core to the transaction that it waits for.
    if (!session_->local->calls() && session_->worker.unfinished() == 0) {
      SleepUntilNanos(now + kLookEveryNanos);
    } else {
      co_await session_->worker.SleepUntil(now + kLookEveryNanos);
    }
    now = NowNanos();
  }
  if (now > start) {
    Sometimes<"precedence: a commit waits for the transaction that goes first">();
    if (now - start >= precedence->limit_nanos()) Sometimes<"precedence: a commit has waited as long as it may">();
    precedence->NoteHeldUp(now - start);
    if (claim_ != nullptr) claim_->NoteHeldUp(now - start);
  }
  coro::Async<Status> committed = RunNow();
  co_return co_await committed;
}

coro::Async<Status> Commit::RunNow() {
  redo_bytes_ = log_->RedoBytes(writes_.change_bytes());
  if (redo_bytes_ > 0) {
    bool wait = false;
    Status reserved = log_->writer().Reserve(redo_bytes_, &wait);
    if (wait) return RunWhenRoom();
    if (!reserved.ok()) {
      redo_bytes_ = 0;
      return reserved;
    }
  }
  return RunReserved();
}

coro::Async<Status> Commit::RunReserved() {
  if (!UsesVerbs()) return CommitDirect();
  if (Writes()) return CommitMixed();
  // It locks, logs and installs nothing, so a round trip for the words that were read is all.
  GANNET_CHECK(redo_bytes_ == 0, "%d bytes of redo are reserved for no write", redo_bytes_);
  TakeReadForUpdate();
  return ValidateMixed(/*in_the_past=*/writes_.entries().empty());
}

coro::Async<Status> Commit::Validate() {
  TakeReadForUpdate();
  if (UsesVerbs()) return ValidateMixed(/*in_the_past=*/false);
  return ValidateDirect();
}

// What was read for update was read, too.
void Commit::TakeReadForUpdate() {
  for (const WriteEntry& entry : writes_.entries()) {
    if (entry.kind != WriteKind::kInsert) reads_.AddRecord(entry.record, entry.seen);
  }
}

}  // namespace gannet::txn
