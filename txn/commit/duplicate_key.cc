#include "txn/commit/duplicate_key.h"

#include "base/sometimes.h"
#include "txn/record/record.h"
#include "txn/session/session_state.h"

namespace gannet::txn {

Status DuplicateKey::Note(const WriteEntry& insert, const ReadEntry& existing) {
  if (!found()) entry_ = static_cast<size_t>(&insert - writes_.entries().data());
  const int own = writes_.FindRecord(existing.word);
  if (own >= 0 && writes_[own].locked && existing.seen == Locked(writes_[own].seen, session_->owner_bits)) {
    Sometimes<"commit: a key is inserted that the transaction updates, too">();
    return absl::OkStatus();
  }
  if (IsLocked(existing.seen) || IsAbsent(existing.seen)) {
    Sometimes<"commit: an insert meets a record that is locked or absent">();
    session_->conflict.Note(*insert.table, insert.key);
    return session_->LockedTooLong(existing.seen);
  }
  Sometimes<"commit: an insert meets a committed record">();
  reads_.AddRecord(existing.word, existing.seen);
  return absl::OkStatus();
}

}  // namespace gannet::txn
