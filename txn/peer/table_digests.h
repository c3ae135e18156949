// TableDigests: what the tables of this node are, in registered memory, where the nodes that start later READ it. Nodes
// that disagree would read each other's rows wrongly, or not find them: so such a node does not start.
//
//   | 0 | count | all |     one line: number of tables plus one (0: they are not known yet), digest of all
//   | 0 | digest ... |      kDigestLines lines: of each of the first tables, for the message
//
// A digest covers what a node must know of a table to use another node's part: name, keys, payloads, the kind of index
// and its rights, its placement, and as a secondary index its fields and whether it is complete. Placements that are a
// program's own functions cannot be compared.
//
// The lines lie at the same offset on every node: Database::Open allocates them before the tables. They are written
// when a node has recovered its directory, if it has one, and again after each change of the tables of all nodes. An
// owner of rows that tells its tables later than another node looks is compared when that node opens its next session.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/cache_line.h"
#include "base/coro/worker.h"
#include "base/status.h"
#include "base/thread.h"
#include "rdma/fabric.h"
#include "txn/node/table_set.h"

namespace gannet::txn {

class TableDigests {
 public:
  static constexpr size_t kDigestLines = 8;
  static constexpr size_t kBytes = (1 + kDigestLines) * kLineBytes;

  // `lines`: of kBytes, zeroed, in the part of the node's memory that others can only READ.
  TableDigests(rdma::Fabric* fabric, rdma::Node* node, std::byte* lines);

  // Tells the other nodes this node's tables, and compares them as Compare does. Of two owners of rows that do this at
  // once, at least one sees the other's tables. `tables` must outlive this.
  Status PublishAndCompare(const TableSet& tables, int data_nodes);
  // Tells other tables than before. The nodes that this one knows have been compared, and change theirs in the same
  // way.
  void PublishAgain(const TableSet& tables);
  // Compares the tables with those of the nodes that own rows, as far as these have told theirs, each once.
  // FailedPrecondition names the other node, and the first table that differs there. Thread-safe; costs one load once
  // all have been compared.
  Status Compare();

 private:
  static constexpr size_t kCount = 1 * kWordBytes;
  static constexpr size_t kAll = 2 * kWordBytes;
  static constexpr size_t kDigestsPerLine = kLineBytes / kWordBytes - 1;
  static constexpr size_t kMostDigests = kDigestLines * kDigestsPerLine;
  static constexpr size_t DigestOffset(size_t table) {
    return (1 + table / kDigestsPerLine) * kLineBytes + (1 + table % kDigestsPerLine) * kWordBytes;
  }

  void Publish(const TableSet& tables);
  // True: the tables are equal. False: the node has told nothing, or is gone.
  StatusOr<bool> CompareWith(rdma::NodeId other, rdma::Channel* channel, coro::Worker* worker) const;

  rdma::Fabric* fabric_;
  rdma::Node* node_;
  std::byte* lines_;
  int data_nodes_ = 0;
  std::atomic<bool> done_{false};
  Mutex mutex_;
  std::vector<const Table*> tables_;  // guarded by mutex_
  std::vector<rdma::NodeId> rest_;    // guarded by mutex_: owners that were not compared yet
};

}  // namespace gannet::txn
