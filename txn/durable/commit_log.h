// CommitLog: the log's side of the commits of one session. Every session has one. In a database that logs nothing
// (without a directory, or with DurabilityMode::kNone) its redo takes no bytes, no key has a removed version, and no
// epoch is awaited, so a commit takes the same steps there.
//
// A commit without changes, or in a database that logs nothing, has RedoBytes of 0. Only a commit with redo bytes may
// use the writer, the epoch and the transaction's id.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/coro/worker.h"
#include "base/status.h"
#include "index/key.h"
#include "log/format/transaction_format.h"
#include "log/log.h"
#include "txn/durable/epoch_words.h"
#include "txn/durable/removal_versions.h"
#include "txn/durable/unsaved_loads.h"
#include "txn/store/table.h"

namespace gannet::txn {

class Durability;

// Belongs to the session's thread. The Durability that made it must outlive it.
class CommitLog {
 public:
  // Made by Durability::OpenCommitLog. `writer` is null if nothing is logged. `sync`: results wait for the disk.
  CommitLog(Durability* durability, std::unique_ptr<log::LogWriter> writer, bool sync);
  CommitLog(const CommitLog&) = delete;
  CommitLog& operator=(const CommitLog&) = delete;

  // Has `worker` resume the coroutines that wait for an epoch. `alone`: the worker waits for nothing else, and may
  // sleep.
  void AddTo(coro::Worker* worker, bool alone);

  // Largest number of bytes that the changes of one transaction may take.
  size_t most_change_bytes() const { return most_change_bytes_; }
  // Number of bytes that a commit with changes of `change_bytes` reserves. 0: it logs nothing.
  size_t RedoBytes(size_t change_bytes) const {
    return writer_ == nullptr || change_bytes == 0 ? 0 : change_bytes + log::kTransactionOverheadBytes;
  }
  log::LogWriter& writer() { return *writer_; }
  // Raises the node's epoch to at least `epoch`.
  void RaiseEpoch(uint64_t epoch) { log_->RaiseEpoch(epoch); }
  // Number of a transaction of several nodes.
  uint64_t NextTransactionId();
  // True if a bulk load of this node is not durable: then no change may be logged.
  bool any_unsaved_load() const { return loads_->any(); }

  // The greatest version of a removed record with this key, or 0. Called when the key of an insert is in its index.
  uint64_t RemovedVersion(TableId table, const index::Key& key) const { return removals_->Of(table, key); }
  // Called before a removed key leaves its index.
  void NoteRemoval(TableId table, const index::Key& key, uint64_t version) { removals_->Note(table, key, version); }
  // The place where `owner` has RemovedVersion of the key, for a READ.
  rdma::GlobalAddress RemovedVersionAt(rdma::NodeId owner, TableId table, const index::Key& key) const {
    return removals_->At(owner, table, key);
  }

  // Number of words that a commit READs of each other node that it touched, beginning at EpochsAt.
  size_t EpochWordsToRead(bool has_redo) const {
    if (has_redo) return EpochWords::kCommitWords;
    return awaits_durability_ ? 1 : 0;
  }
  // A commit with redo READs the current epoch and the count of loads; another one the newest dirty epoch.
  rdma::GlobalAddress EpochsAt(rdma::NodeId node, bool has_redo) const {
    return has_redo ? words_->CurrentAt(node) : words_->DirtyAt(node);
  }

  // True if results wait until everything on which they depend is durable.
  bool awaits_durability() const { return awaits_durability_; }
  // Returns the epoch that must be durable before the result of a transaction may be told; 0: everything is durable
  // already. `epoch`: the latest in which it wrote, or that it found at another node. `rests_on_reads`: it read
  // something here and wrote nothing; then it waits for the newest epoch in which anything was logged.
  uint64_t EpochToAwait(uint64_t epoch, bool rests_on_reads) const {
    if (!awaits_durability_) return 0;
    epoch = std::max(epoch, rests_on_reads ? log_->last_dirty_epoch() : 0);
    return epoch > log_->durable_epoch() ? epoch : 0;
  }
  uint64_t durable_epoch() const { return log_->durable_epoch(); }
  Status health() const { return log_->health(); }

 private:
  Durability* const durability_;
  const std::unique_ptr<log::LogWriter> writer_;
  log::Log* const log_;  // null if writer_ is
  EpochWords* const words_;
  RemovalVersions* const removals_;
  const UnsavedLoads* const loads_;
  const size_t most_change_bytes_;
  const bool awaits_durability_;
};

}  // namespace gannet::txn
