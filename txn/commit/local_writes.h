// LocalWrites: a commit's steps with the records of this node, by its CPU: lock, index, install, unlock. The order of
// the steps, and why it is right, is in commit.cc.
#pragma once

#include "base/status.h"
#include "txn/access/read_set.h"
#include "txn/access/write_buffer.h"
#include "txn/commit/duplicate_key.h"
#include "txn/commit/redo.h"
#include "txn/session/write_set.h"

namespace gannet::txn {

struct SessionState;

// Releases what a write without effect holds at this node: its lock, its record, the block to move to.
void ReleaseDirect(SessionState& session, WriteEntry& entry);

// Used by the session's thread.
class LocalWrites {
 public:
  // All must outlive this.
  LocalWrites(SessionState* session, ReadSet* reads, WriteBuffer* writes, Redo* redo, DuplicateKey* duplicate)
      : session_(session), reads_(*reads), writes_(*writes), redo_(*redo), duplicate_(*duplicate) {}
  LocalWrites(const LocalWrites&) = delete;
  LocalWrites& operator=(const LocalWrites&) = delete;

  // Locks the records to update or remove, and puts the keys of inserts into their indexes. What was only read for
  // update joins the read set. Aborted: a record is locked or was changed. Others: those of the memory, of the index,
  // and of DuplicateKey::Note.
  Status LockAndIndex();
  // Installs and unlocks all changes. Nothing of it fails.
  void Install();
  // Undoes LockAndIndex, however far it came.
  void Release();

 private:
  Status Lock(WriteEntry& entry);
  Status Index(WriteEntry& entry);
  void ApplyToOwnInsert(WriteEntry& entry);
  Status RemakeInsert(WriteEntry& entry);
  Status PrepareMove(WriteEntry& entry);
  void FinishMove(WriteEntry& entry);
  void Install(WriteEntry& entry);

  SessionState* const session_;
  ReadSet& reads_;
  WriteBuffer& writes_;
  Redo& redo_;
  DuplicateKey& duplicate_;
};

}  // namespace gannet::txn
