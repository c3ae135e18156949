// EntryKeeper: keeps the secondary indexes (txn/store/secondary_index.h) of the rows that a transaction writes.
//
// KeepIndexes compares, for each row of the write set, the entry that the row had with the one that it has now. What it
// had is computed from the row as it was read: that is still in the record of this node, or in the image of a record of
// another node, and the commit checks by the lock that it has not changed. Entries are removed before others are
// inserted, so rows may exchange keys. A note for each row and index says which entry the write set leaves, so
// KeepIndexes may be called again after further writes.
//
// An index may be published while transactions run (Database::CreateIndex). Every commit looks for the indexes of its
// tables after all its reads. So a transaction that read a row as one left it that knew the index knows it, too; and
// the entries of a row are those of its last version that such a transaction wrote, or there is none. What is missing
// is added by the build, whose scan begins when all transactions have ended that may not know the index.
//
// On several nodes it is published on one after the other. Until all have it, a commit that finds it is a conflict
// (SecondaryIndex::is_being_published): otherwise one node could write a row with its entry, and another node, which
// does not know the index yet, change that row and leave the entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/coro/task.h"
#include "base/status.h"
#include "txn/access/failure.h"
#include "txn/access/point_access.h"
#include "txn/access/write_buffer.h"
#include "txn/store/requests.h"

namespace gannet::txn {

class SecondaryIndex;

// DataLoss: a row has no entry although the index is complete, or an entry leads to no row. Either is a state that
// never existed, which the validation finds, or the index is wrong: the caller validates before it tells the user.
[[gnu::cold]] Status Dangling(const SecondaryIndex& index, std::string_view entry_key, const char* what);

// Used by the session's thread, for one operation at a time. Its notes are those of one transaction, up to Clear.
class EntryKeeper {
 public:
  // All must outlive this.
  EntryKeeper(WriteBuffer* writes, Failure* failure, PointAccess* points)
      : writes_(*writes), failure_(*failure), points_(*points) {}
  EntryKeeper(const EntryKeeper&) = delete;
  EntryKeeper& operator=(const EntryKeeper&) = delete;

  // True if the transaction writes rows of a table with secondary indexes.
  bool HasIndexedWrites() const;
  // Adds the changes of secondary indexes to the write set that the writes up to now make. AlreadyExists: a row has
  // the key of a unique index already; with `last`, when the commit follows, the commit finds most of these. DataLoss
  // without a failure: that of Dangling. After an error, call it again.
  coro::Task<Status> KeepIndexes(bool last);

  // Called by the build of an index (txn/schema/create_index.cc). Adds the entry of a row, if there is such a row and
  // it has none. AlreadyExists names two rows with one key of a unique index. `row` must outlive the await.
  coro::Task<Status> AddEntry(const SecondaryIndex& index, Key row);
  // Removes an entry, if it is there.
  coro::Task<Status> RemoveEntryByKey(const SecondaryIndex& index, Key entry_key);

  void Clear() { notes_.clear(); }

 private:
  // What the write set leaves of a row in an index.
  struct Note {
    const SecondaryIndex* index = nullptr;
    std::optional<std::string_view> entry;  // its key, in the arena
    uint32_t next = UINT32_MAX;             // number of the next note about the same row
  };
  struct Insertion {
    uint32_t note;
    Key row;
    std::string_view entry;
  };
  struct Removal {
    uint32_t note;
    Key row;
  };
  struct Changes {
    std::vector<Removal> removals;
    std::vector<Insertion> insertions;
  };

  std::string_view KeepText(std::string_view text);
  Status CopyBase(const WriteEntry& entry, std::span<std::byte> out) const;
  // Valid until the next call.
  StatusOr<std::optional<std::string_view>> EntryKeyOf(const SecondaryIndex& index, const Key& key,
                                                       std::span<const std::byte> payload);
  StatusOr<uint32_t> NoteOf(WriteEntry& entry, const SecondaryIndex& index);
  Status CollectChanges(std::span<const uint32_t> written, Changes* changes);
  coro::Task<Status> ChangeIndexes(const Changes* changes, bool last);
  Status CheckKeysDiffer(const Changes& changes) const;
  Status RemoveEntry(RecordHandle handle);
  Status InsertEntry(const SecondaryIndex& index, std::string_view entry_key, const Key& row);

  WriteBuffer& writes_;
  Failure& failure_;
  PointAccess& points_;
  std::vector<Note> notes_;

  // Scratch.
  std::string entry_key_;
  std::string entry_payload_;
  std::vector<std::byte> row_bytes_;
};

}  // namespace gannet::txn
