// Access: what one transaction has read and is to write, and the parts that do both.
//
//   points     rows by their keys            point_access.h -> local_reader.h, batch_reader.h -> remote_reader.h
//   scanner    ranges, windows, nearest      scanner.h -> local_scanner.h, scatter_scanner.h -> remote_scanner.h
//   entries    secondary indexes             entry_keeper.h -> points
//   by_index   rows by secondary indexes     index_reader.h -> points, entries
//
// An arrow is a reference; none points the other way. Every read adds what it saw to the read set or, if it is for
// update, to the write buffer; the transaction's own writes are served from there. Both stay until the transaction
// ends; its commit works on them.
//
// One for each transaction; reused for the next one after Clear.
#pragma once

#include "txn/access/batch_reader.h"
#include "txn/access/call_buffers.h"
#include "txn/access/entry_keeper.h"
#include "txn/access/failure.h"
#include "txn/access/index_reader.h"
#include "txn/access/local_reader.h"
#include "txn/access/local_scanner.h"
#include "txn/access/point_access.h"
#include "txn/access/read_set.h"
#include "txn/access/remote_reader.h"
#include "txn/access/remote_scanner.h"
#include "txn/access/scanner.h"
#include "txn/access/scatter_scanner.h"
#include "txn/access/write_buffer.h"

namespace gannet::txn {

// Used by the session's thread, for one operation at a time.
class Access {
 public:
  // `session` must outlive this.
  explicit Access(SessionState* session)
      : writes_(session),
        local_reader_(session, &reads_, &writes_),
        remote_reader_(session, &reads_, &writes_),
        batch_reader_(session, &reads_, &writes_, &local_reader_, &remote_reader_, &buffers_),
        local_scanner_(session, &reads_, &writes_, &local_reader_),
        remote_scanner_(session, &reads_, &writes_, &remote_reader_),
        scatter_scanner_(session, &writes_, &local_scanner_, &remote_scanner_, &buffers_),
        points_(session, &writes_, &failure_, &local_reader_, &remote_reader_, &batch_reader_),
        scanner_(session, &writes_, &failure_, &local_scanner_, &scatter_scanner_),
        entries_(&writes_, &failure_, &points_),
        by_index_(&writes_, &points_, &entries_) {}
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;

  PointAccess& points() { return points_; }
  Scanner& scanner() { return scanner_; }
  EntryKeeper& entries() { return entries_; }
  IndexReader& by_index() { return by_index_; }

  ReadSet& reads() { return reads_; }
  const ReadSet& reads() const { return reads_; }
  WriteBuffer& writes() { return writes_; }
  const WriteBuffer& writes() const { return writes_; }
  Failure& failure() { return failure_; }
  const Failure& failure() const { return failure_; }

  void Clear() {
    reads_.Clear();
    writes_.Clear();
    failure_.Clear();
    entries_.Clear();
  }

 private:
  Failure failure_;
  ReadSet reads_;
  WriteBuffer writes_;
  CallBuffers buffers_;
  LocalReader local_reader_;
  RemoteReader remote_reader_;
  BatchReader batch_reader_;
  LocalScanner local_scanner_;
  RemoteScanner remote_scanner_;
  ScatterScanner scatter_scanner_;
  PointAccess points_;
  Scanner scanner_;
  EntryKeeper entries_;
  IndexReader by_index_;
};

}  // namespace gannet::txn
