// UnsavedLoads: the bulk loads of one node that no checkpoint has yet.
//
// A load is not logged, so a crash takes it away until a checkpoint has it. A change that depends on loaded rows must
// not survive such a crash. Three rules ensure that:
//
//   1. A load counts from before its first row is visible until a checkpoint that has all of it is in the manifest.
//      While one counts, no change of this node's rows is logged as committed: its own sessions check any() between
//      their validation and their log (commit.cc, redo.h), and those of other nodes are refused their part of the log
//      (Durability::AppendForPeer). A transaction that read rows of this node and changes rows elsewhere finds the
//      count in the READ that brings this node's epoch (EpochWords).
//   2. A load and the walk of a checkpoint over the same table exclude each other, so a checkpoint has all of a load or
//      nothing of it.
//   3. A checkpoint saves the loads that had ended when it walked their tables, and only if it is published.
//
// Why the check is not too early: a transaction checks after it has read and locked everything that it ever will. If
// nothing counts then, every load that is not durable becomes visible later, and the transaction saw nothing of it.
//
// Thread-safe. Checkpoints are taken one at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "base/thread.h"
#include "rdma/fabric.h"
#include "txn/store/table.h"

namespace gannet::txn {

class EpochWords;

class UnsavedLoads {
 public:
  // Lets other nodes READ in `words`, which must outlive this, whether any() is true.
  void AnnounceIn(EpochWords* words);

  // True if a load is not durable.
  bool any() const { return unsaved_.load(std::memory_order_seq_cst) != 0; }
  // FailedPrecondition, for a commit that changes rows of `node` or depends on them.
  static Status Refusal(rdma::NodeId node);

  // Called before and after the index is built. Begin waits for a walk, or another load, of the same table.
  void Begin(TableId table);
  // `seen`: rows of it are visible now.
  void End(TableId table, bool seen);

  // Called before and after a checkpoint walks one table. BeginWalk waits for a load of it, or for its Release; before
  // that it calls `waits`.
  void BeginWalk(TableId table, absl::FunctionRef<void()> waits);
  void EndWalk();
  // True if the walks since the last EndCheckpoint met a load.
  bool met() const;
  // `published`: all loads that those walks met are durable.
  void EndCheckpoint(bool published);

  // Keeps walks and loads of a table away until Release. TryHold: false if there is one now. Hold waits for its end.
  bool TryHold(TableId table);
  void Hold(TableId table);
  void Release(TableId table);
  // The table has been dropped, so nothing depends on its loads any more. Between Hold and Release.
  void Forget(TableId table);

 private:
  void Count(int64_t loads);  // the caller holds the lock

  std::atomic<uint64_t> unsaved_{0};
  mutable Mutex mutex_;  // guards the members below
  CondVar changed_;
  std::set<TableId> loading_;  // or held
  std::optional<TableId> walked_;
  std::map<TableId, int64_t> ended_;  // loads that no walk has met
  std::map<TableId, int64_t> met_;    // loads that are in the checkpoint that is being written
  EpochWords* words_ = nullptr;
};

}  // namespace gannet::txn
