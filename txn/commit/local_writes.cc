#include "txn/commit/local_writes.h"

#include "base/check.h"
#include "base/mutant.h"
#include "base/sometimes.h"
#include "index/record_header.h"
#include "rdma/versioned.h"
#include "txn/commit/commit_internal.h"
#include "txn/node/index_damage.h"
#include "txn/record/record.h"
#include "txn/session/session_state.h"
#include "txn/store/conflict.h"

namespace gannet::txn {

using index::RecordBytes;

namespace {

// A commit holds the lock of each record that it changes or unlocks. A node that is not alone has clients that can
// write into its records, so there the record's word says nothing about this process, and only the note in the entry
// counts.
void CheckHeld(const SessionState& session, const WriteEntry& entry) {
  const bool alone = session.change_counter != nullptr;
  const uint64_t word = alone ? LoadWord(entry.direct) : 0;
  GANNET_CHECK(entry.locked && (!alone || word == Locked(entry.seen, session.owner_bits)),
               "record %s of table %d, seen in state %x, is changed without its lock (%d); it has %x, and the lock's "
               "owner is %x",
               entry.record.ToString(), entry.table->id(), entry.seen, entry.locked, word, session.owner_bits);
}

// Removes a record, whose lock this session holds, from its index. True if that does not lead to it any more.
bool TakeOut(SessionState& session, const WriteEntry& entry) {
  const auto remove = [&] {
    return entry.table->local_index().Remove(session.context, entry.key, entry.record).status();
  };
  return session.local->index_damage.HasLeft(*session.local, *entry.table, entry.key, entry.record,
                                             ChangeForSure(remove, [] { return true; }));
}

}  // namespace

Status LocalWrites::Lock(WriteEntry& entry) {
  // A lock bit in what was seen would make this one look taken while another transaction holds it.
  GANNET_CHECK(!entry.locked && !IsLocked(entry.seen), "record %s, seen in state %x, is locked again (%d)",
               entry.record.ToString(), entry.seen, entry.locked);
  const uint64_t found = CompareAndSwapWord(entry.direct, entry.seen, Locked(entry.seen, session_->owner_bits));
  if (found != entry.seen) [[unlikely]] {
    Sometimes<"commit: a record to write is locked or was changed">();
    session_->conflict.Note(*entry.table, entry.key);
    return session_->LockedTooLong(found);
  }
  entry.locked = true;
  return absl::OkStatus();
}

// Applies the transaction's later changes to its own insert. This comes before any other transaction can find the
// record, and uses a new version: a reader that knows the block from earlier (a location cache) may have READ lines of
// what Insert put there.
void LocalWrites::ApplyToOwnInsert(WriteEntry& entry) {
  const size_t lines = RecordLines(entry.key, entry.payload_bytes);
  rdma::BeginWrite(entry.direct, lines);
  ApplyPatches(entry.direct, entry);
  entry.seen = RaiseLockedVersion(entry.direct, lines, entry.seen, VersionOf(entry.seen) + 1, session_->owner_bits);
}

Status LocalWrites::Index(WriteEntry& entry) {
  if (entry.patches != nullptr) [[unlikely]]
    ApplyToOwnInsert(entry);
  rdma::GlobalAddress existing;
  const StatusOr<index::Change> change =
      entry.table->local_index().Insert(session_->context, entry.key, entry.record, &existing);
  if (change.ok()) [[likely]] {
    entry.indexed = true;
    redo_.RaiseInsertVersion(entry);
    reads_.Carry(*change, *session_);
    return absl::OkStatus();
  }
  if (!absl::IsAlreadyExists(change.status())) return change.status();
  GANNET_RETURN_IF_ERROR(CheckLeadsToKey(*session_->local, *entry.table, entry.key, existing));
  return duplicate_.Note(entry, {existing, LoadWord(session_->Direct(existing))});
}

Status LocalWrites::PrepareMove(WriteEntry& entry) {
  std::span<std::byte> payload(writes_.arena().Allocate(entry.payload_bytes), entry.payload_bytes);
  writes_.CopyPayload(entry, 0, payload);
  StatusOr<NewRecord> made = MakeLockedRecord(*session_->slab, entry.table->id(), entry.key, payload,
                                              session_->owner_bits, VersionOf(entry.seen));
  if (!made.ok()) return made.status();
  entry.moved_to = session_->local->node.AddressOf(made->block);
  entry.moved_state = made->state;
  return absl::OkStatus();
}

// The index leads to the new place before that is unlocked, and the old place becomes absent last. A reader that holds
// the old address waits for its lock, and then finds that the record has left; so it never finds both, or neither.
void LocalWrites::FinishMove(WriteEntry& entry) {
  Sometimes<"commit: a record moves to a block of another size">();
  // This comes before the index no longer leads there (lent_records.h).
  const int64_t old_bytes =
      session_->local->lent_records.Drop(entry.record) ? 0 : BlockBytesOf(entry.key, entry.image_payload_bytes);
  const Status replaced = ChangeForSure(
      [&] { return entry.table->local_index().Replace(entry.key, entry.record, entry.moved_to); }, [] { return true; });
  const bool has_left =
      session_->local->index_damage.HasLeft(*session_->local, *entry.table, entry.key, entry.record, replaced);
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

void LocalWrites::Install(WriteEntry& entry) {
  CheckHeld(*session_, entry);
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
      redo_.NoteRemovedVersion(entry);
    }
    const bool has_left = TakeOut(*session_, entry);
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

void LocalWrites::Install() {
  for (WriteEntry& entry : writes_.entries()) {
    if (entry.is_direct() && entry.kind != WriteKind::kNone) Install(entry);
  }
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
  CheckHeld(session, entry);
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
  const bool has_left = TakeOut(session, entry);
  MarkAbsent(entry.direct, RecordLines(entry.key, entry.image_payload_bytes), entry.seen);
  if (has_left) session.participant->Retire(entry.direct, bytes, session.slab.get());
}

void LocalWrites::Release() {
  for (WriteEntry& entry : writes_.entries()) ReleaseDirect(*session_, entry);
}

Status LocalWrites::LockAndIndex() {
  for (WriteEntry& entry : writes_.entries()) {
    if (entry.kind == WriteKind::kNone) {
      reads_.AddRecord(entry.record, entry.seen);
      continue;
    }
    if (!entry.is_direct()) continue;
    if (ChangesRecord(entry)) GANNET_RETURN_IF_ERROR(Lock(entry));
    if (entry.kind == WriteKind::kInsert && entry.payload_bytes != entry.image_payload_bytes) [[unlikely]] {
      GANNET_RETURN_IF_ERROR(RemakeInsert(entry));
    }
    if (NeedsMove(entry)) [[unlikely]]
      GANNET_RETURN_IF_ERROR(PrepareMove(entry));
  }
  for (WriteEntry& entry : writes_.entries()) {
    if (entry.kind == WriteKind::kInsert && entry.is_direct()) GANNET_RETURN_IF_ERROR(Index(entry));
  }
  return absl::OkStatus();
}

// Makes a new block for an own insert that was resized, which no other transaction has seen either.
Status LocalWrites::RemakeInsert(WriteEntry& entry) {
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

}  // namespace gannet::txn
