// IndexReader: reads rows by the entries of secondary indexes (txn/store/secondary_index.h).
//
// An entry names the primary key of its row. A transaction finds its own writes by the indexes, too, because the
// entries of what it has written are added to the write set before (EntryKeeper::KeepIndexes).
#pragma once

#include <cstddef>
#include <string_view>

#include "base/coro/task.h"
#include "base/status.h"
#include "txn/access/entry_keeper.h"
#include "txn/access/point_access.h"
#include "txn/access/write_buffer.h"
#include "txn/store/requests.h"

namespace gannet::txn {

// Used by the session's thread, for one operation at a time.
class IndexReader {
 public:
  // All must outlive this.
  IndexReader(WriteBuffer* writes, PointAccess* points, EntryKeeper* keeper)
      : writes_(*writes), points_(*points), keeper_(*keeper) {}
  IndexReader(const IndexReader&) = delete;
  IndexReader& operator=(const IndexReader&) = delete;

  // Returns the row to which an entry leads; `entry_key` lies in the arena. NotFound: there is no such entry. Others:
  // the errors of KeepIndexes, which it calls if there is something to keep, and of PointAccess.
  coro::Task<StatusOr<RowBy>> GetBy(const SecondaryIndex& index, std::string_view entry_key, bool for_update);
  // Replaces *rows by the rows of the entries with these numbers. `entries` must not change meanwhile. The errors are
  // those of PointAccess, and DataLoss without a failure: that of Dangling.
  struct EntrySpan {
    size_t from = 0;
    size_t to = 0;
  };
  coro::Task<Status> RowsOfEntries(const SecondaryIndex& index, const ScanRows& entries, EntrySpan span,
                                   ScanOptions options, ScanRows* rows);

 private:
  WriteBuffer& writes_;
  PointAccess& points_;
  EntryKeeper& keeper_;
};

}  // namespace gannet::txn
