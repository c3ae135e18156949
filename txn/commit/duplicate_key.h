// DuplicateKey: the insert of a commit that met a record with its key, if there is one.
//
// A committed record fails the commit with AlreadyExists, provided that all else validates: so the record joins the
// read set. An insert by this node's CPU, by a call and by verbs notes what it met here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "txn/access/read_set.h"
#include "txn/access/write_buffer.h"
#include "txn/session/write_set.h"
#include "txn/store/key_status.h"

namespace gannet::txn {

struct SessionState;

// Used by the session's thread. Its state is that of one commit, up to Clear.
class DuplicateKey {
 public:
  // All must outlive this.
  DuplicateKey(SessionState* session, ReadSet* reads, WriteBuffer* writes)
      : session_(session), reads_(*reads), writes_(*writes) {}
  DuplicateKey(const DuplicateKey&) = delete;
  DuplicateKey& operator=(const DuplicateKey&) = delete;

  // `insert`, an entry of the write set, met `existing`. Ok: the commit is to validate, and then ends with Error().
  // Aborted: what exists is locked by another transaction, or absent. Unavailable: it stays locked by a lost node
  // (LockedTooLong).
  Status Note(const WriteEntry& insert, const ReadEntry& existing);
  bool found() const { return entry_ != kNone; }
  // AlreadyExists, which names the row. Call it only if found().
  Status Error() const { return KeyExists(*writes_[entry_].table, writes_[entry_].key); }
  void Clear() { entry_ = kNone; }

 private:
  static constexpr size_t kNone = SIZE_MAX;

  SessionState* const session_;
  ReadSet& reads_;
  WriteBuffer& writes_;
  size_t entry_ = kNone;  // number of the insert
};

}  // namespace gannet::txn
