// RemoteScanner: scans and searches of the rows of one other node: one-sided (READs of the index's leaves, then of the
// records, neighbours together), or by calls that do both at the owner. It chooses the path for each scan
// (path_choice.h).
//
// What it reads goes to the read set and the write buffer. It leaves out rows that the transaction has removed, and
// does not find its inserts, as LocalScanner does.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/coro/task.h"
#include "base/status.h"
#include "index/index.h"
#include "rdma/fabric.h"
#include "rdma/rpc.h"
#include "txn/access/call_buffers.h"
#include "txn/access/read_set.h"
#include "txn/access/remote_reader.h"
#include "txn/access/rows_wanted.h"
#include "txn/access/write_buffer.h"
#include "txn/peer/wire.h"
#include "txn/store/requests.h"

namespace gannet::txn {

// Used by the session's thread. Scans of several nodes may be in progress at a time: they share no scratch.
class RemoteScanner {
 public:
  // All must outlive this.
  RemoteScanner(SessionState* session, ReadSet* reads, WriteBuffer* writes, RemoteReader* reader)
      : session_(session), reads_(*reads), writes_(*writes), reader_(*reader) {}
  RemoteScanner(const RemoteScanner&) = delete;
  RemoteScanner& operator=(const RemoteScanner&) = delete;

  // Appends the rows of `node` that are wanted, and as many more as the transaction's removals may hide. The errors are
  // those of RemoteReader. After an error *rows has some of the rows.
  coro::Task<Status> Append(const Table& table, RowsWanted wanted, rdma::NodeId node, CallBuffers::Messages* messages,
                            ScanRows* rows, ScanOptions options);
  // Estimates how many rows of the range `node` has, without a verb. False: nothing is known.
  bool Estimate(const Table& table, const index::ScanRange& range, rdma::NodeId node, size_t* rows);

 private:
  coro::Task<Status> AppendNearest(const Table& table, RowsWanted wanted, index::RemoteIndex* remote, ScanRows* rows,
                                   ScanOptions options);
  coro::Task<Status> AppendByReads(const Table& table, RowsWanted wanted, index::RemoteIndex* remote, ScanRows* rows,
                                   ScanOptions options);
  // READs the records of `found`, appends them, and adds the witnesses to the read set. After a conflict that a damaged
  // index may be the reason of, *doubtful is the number of the entry.
  coro::Task<Status> Fetch(const Table& table, const index::ScanResult& found, ScanRows* rows, ScanOptions options,
                           size_t* doubtful);
  coro::Task<Status> AppendByCalls(const Table& table, RowsWanted wanted, rdma::NodeId node,
                                   CallBuffers::Messages* messages, ScanRows* rows, ScanOptions options);
  Status TakeScanned(const Table& table, rdma::NodeId node, rdma::WireReader& reader, ScanRequest* request,
                     ScanRows* rows, ScanOptions options, bool* more);
  Status AppendImage(const GetRequest& request, rdma::GlobalAddress record, const std::byte* image, ScanRows* rows,
                     ScanOptions options);

  SessionState* const session_;
  ReadSet& reads_;
  WriteBuffer& writes_;
  RemoteReader& reader_;
};

}  // namespace gannet::txn
