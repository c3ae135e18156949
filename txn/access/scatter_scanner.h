// ScatterScanner: scans and searches of tables that are spread over nodes: it asks the owners, and merges their rows.
//
// The owners are asked at the same time, each by a coroutine of its own, and all answers are awaited before anything is
// done with them, errors included: READs and calls in flight write into buffers of this object.
//
// Without a limit one round asks all owners. With a limit and owners of any keys, each may have all rows that are
// wanted, so each is asked for as many. If the owners have ranges of the keys (Owners::in_order), the first rows are at
// the first owners, and a round asks only as many of them as will probably be enough:
//
//   - The client's index estimates how many rows an owner has (RemoteIndex::Estimate, no verb). Owners are asked up to
//     the one with which the estimates reach the limit. Each is asked for what half of the estimates before it leaves
//     wanted: an estimate that is too high would cost another round.
//   - An owner of which nothing is known is taken to have enough. If that was wrong, the next round asks another one
//     (most ranges cross one boundary at most), then two at once, four, and so on.
//   - This node's own rows are read at once, so it is known how many they are.
//
// If an owner's rows end at its limit and more are wanted, the next round asks it for the rest.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/coro/started.h"
#include "base/coro/task.h"
#include "base/status.h"
#include "index/index.h"
#include "rdma/fabric.h"
#include "txn/access/call_buffers.h"
#include "txn/access/local_scanner.h"
#include "txn/access/remote_scanner.h"
#include "txn/access/rows_wanted.h"
#include "txn/access/write_buffer.h"
#include "txn/store/requests.h"
#include "txn/store/table.h"

namespace gannet::txn {

// Used by the session's thread, for one scan at a time. Its scratch is kept from one transaction to the next.
class ScatterScanner {
 public:
  // All must outlive this.
  ScatterScanner(SessionState* session, WriteBuffer* writes, LocalScanner* local, RemoteScanner* remote,
                 CallBuffers* buffers)
      : session_(session), writes_(*writes), local_(*local), remote_(*remote), buffers_(*buffers) {}
  ScatterScanner(const ScatterScanner&) = delete;
  ScatterScanner& operator=(const ScatterScanner&) = delete;

  // Appends the rows of all owners, up to the range's limit; of one owner, and as many more as the transaction's
  // removals may hide. They are in the order of the scan, unless `wanted` is spatial. The errors are those of
  // LocalScanner and RemoteScanner. Nothing is in flight when it returns.
  coro::Task<Status> Append(const Table& table, RowsWanted wanted, ScanRows* rows, ScanOptions options);

 private:
  // The share of one of several owners in a scan or search.
  struct Part {
    rdma::NodeId owner = 0;
    ScanRows rows;  // known so far
    bool has_all = false;
    size_t asked_for = 0;    // rows, at most, by the last question
    size_t rows_before = 0;  // number of rows that were known before that question
    coro::Started<Status> answer;
  };
  using Parts = std::span<const std::unique_ptr<Part>>;

  bool OwnedDirectly(rdma::NodeId owner) const;
  coro::Task<Status> AppendHere(const Table& table, RowsWanted wanted, ScanRows* rows, ScanOptions options);
  coro::Task<Status> AppendOf(rdma::NodeId owner, const Table& table, const RowsWanted& wanted,
                              CallBuffers::Messages* messages, ScanRows* rows, ScanOptions options);
  void PrepareParts(const Owners& owners, bool reverse);
  void StartRound(const Table& table, const RowsWanted& wanted, bool in_order, size_t round, Parts parts,
                  ScanOptions options);
  index::ScanRange RestOf(const Part& part, index::ScanRange range, size_t more);
  static void NoteAnswer(Part& part);
  static void MergeParts(const index::ScanRange& range, bool in_order, Parts parts, ScanRows* rows);

  SessionState* const session_;
  WriteBuffer& writes_;
  LocalScanner& local_;
  RemoteScanner& remote_;
  CallBuffers& buffers_;
  std::vector<std::unique_ptr<Part>> parts_;  // scratch
};

}  // namespace gannet::txn
