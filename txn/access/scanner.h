// Scanner: the operations of a transaction on ranges of keys, and its searches of spatial tables: the rows whose
// rectangles meet a window, and those nearest to a point.
//
// It checks what is asked for, has the owners' rows read, without a coroutine if all of them are this node's, and adds
// the transaction's inserts, which are in no index yet. An operation that returns neither Ok nor a result (failure.h)
// has noted the failure and leaves no rows.
//
// The index's witnesses cover the range, the window, or the neighbourhood of the point, gaps included (index/index.h);
// the commit validates them. So a search needs no more than a scan does: the index may have shown a mixture of moments,
// but then a witness has changed.
#pragma once

#include <cstdint>
#include <vector>

#include "base/coro/async.h"
#include "base/coro/task.h"
#include "base/status.h"
#include "index/index.h"
#include "index/rectangle.h"
#include "txn/access/failure.h"
#include "txn/access/local_scanner.h"
#include "txn/access/rows_wanted.h"
#include "txn/access/scatter_scanner.h"
#include "txn/access/write_buffer.h"
#include "txn/store/requests.h"

namespace gannet::txn {

// Used by the session's thread, for one operation at a time.
class Scanner {
 public:
  // All must outlive this.
  Scanner(SessionState* session, WriteBuffer* writes, Failure* failure, LocalScanner* local, ScatterScanner* owners)
      : session_(session), writes_(*writes), failure_(*failure), local_(*local), owners_(*owners) {}
  Scanner(const Scanner&) = delete;
  Scanner& operator=(const Scanner&) = delete;

  // These do what those of Transaction do.
  coro::Async<Status> Scan(const Table& table, const index::ScanRange& range, ScanRows* rows, ScanOptions options);
  coro::Async<Status> Search(const Table& table, const index::Rectangle& window, ScanRows* rows, ScanOptions options);
  coro::Async<Status> Nearest(const Table& table, const index::NearestQuery& query, ScanRows* rows,
                              ScanOptions options);

 private:
  // A range of keys that has all rectangles that meet the window, and others.
  index::ScanRange RectanglesFor(const index::Rectangle& window);
  Status CheckSpatial(const Table& table) const;
  coro::Async<Status> Read(const Table& table, const RowsWanted& wanted, ScanRows* rows, ScanOptions options);
  coro::Task<Status> ReadOfOwners(const Table& table, RowsWanted wanted, ScanRows* rows, ScanOptions options);
  Status Finish(Status read, const Table& table, const RowsWanted& wanted, ScanRows* rows, ScanOptions options);
  void MergeOwnInserts(const Table& table, const RowsWanted& wanted, ScanRows* rows, ScanOptions options);
  static void KeepNearest(const index::NearestQuery& query, ScanRows* rows);

  SessionState* const session_;
  WriteBuffer& writes_;
  Failure& failure_;
  LocalScanner& local_;
  ScatterScanner& owners_;
  std::vector<uint32_t> inserts_;  // scratch
};

}  // namespace gannet::txn
