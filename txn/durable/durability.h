// Durability: how a database keeps its data. Every database has one. With a directory it has the directory's lock, the
// log, the epochs that it shares with other nodes, and checkpoints. Without one it keeps and logs nothing, and its
// answers are zero, empty or Ok.
//
// Database::Open makes it, and Database::Start starts it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "base/thread.h"
#include "log/file/file_system.h"
#include "log/log.h"
#include "txn/durable/catalog.h"
#include "txn/durable/checkpointer.h"
#include "txn/durable/commit_log.h"
#include "txn/durable/epoch_words.h"
#include "txn/durable/manifest_file.h"
#include "txn/durable/removal_versions.h"
#include "txn/durable/unsaved_loads.h"
#include "txn/store/options.h"
#include "txn/store/statistics.h"

namespace gannet::txn {

struct LocalNode;

class Durability {
 public:
  // Locks the directory for this process, if the options name one, and creates the database if they say so
  // (data_directory.h). `words`: this node's. `removals`: memory for RemovalVersions. *catalog gets the tables that the
  // directory has; nothing without a directory.
  static StatusOr<std::unique_ptr<Durability>> Open(const LocalNode* local, std::unique_ptr<EpochWords> words,
                                                    std::byte* removals, Catalog* catalog);
  ~Durability();

  // Recovers the tables, then calls `agree`, which says whether they fit to those of the other nodes. When all nodes
  // have done that (start_together.h), notes the tables in the manifest and starts the log. `next_table`: number of the
  // next table; `generation`: of the catalog that was read. Call it once.
  Status Start(absl::Duration wait_for_others, absl::FunctionRef<Status()> agree, uint32_t next_table,
               uint64_t generation);
  // Makes these the tables of the directory, durably and atomically: after a crash there are the tables before or
  // these. Nothing without a directory. After Start. After an error either may be in the manifest. Checkpoints lose
  // what they have of tables that were dropped, also those that are dropped while they are written.
  Status NoteCatalog(const Catalog& catalog);
  // NoteCatalog for tables that the node has whether the manifest can be written or not. After an error the next
  // checkpoint that is published notes them, if no NoteCatalog has done it before.
  Status NoteCatalogNowOrLater(const Catalog& catalog);
  // The start of this node failed, here or later: tells the other nodes why, and no node waits for this one.
  void NoteFailedStart(const Status& why);
  // Makes one for a session. The errors are those of log::Log::OpenWriter.
  StatusOr<std::unique_ptr<CommitLog>> OpenCommitLog();
  // Does what Database::Checkpoint does.
  Status Checkpoint(const std::atomic<bool>* stop);
  // Does what Database::Backup does.
  Status Backup(const std::string& to, const std::atomic<bool>* stop);
  // Takes a checkpoint if changes or loads are in no log and `keep_unlogged`; then flushes, stops, and unlocks the
  // directory.
  Status Close(bool keep_unlogged);

  // Appends a part of a transaction that another node coordinates (kTxnLog). FailedPrecondition: this node keeps no
  // log, or has a load that is not durable. Aborted: too much for now. Other errors: those of the disk.
  Status AppendForPeer(uint64_t epoch, std::span<const std::byte> part);

  bool has_directory() const { return files_ != nullptr; }
  RemovalVersions& removals() { return removals_; }
  EpochWords& words() { return *words_; }
  UnsavedLoads& loads() { return loads_; }
  const RecoveryReport& recovery() const { return recovery_; }
  // Valid after Start, with a directory.
  log::Log& log() { return *log_; }
  // These are like those of Database.
  log::LogStatistics log_statistics() const { return log_ == nullptr ? log::LogStatistics{} : log_->statistics(); }
  uint64_t logged_epoch() const { return log_ == nullptr ? 0 : log_->last_dirty_epoch(); }
  uint64_t durable_epoch() const { return log_ == nullptr ? 0 : log_->durable_epoch(); }
  Status health() const { return log_ == nullptr ? absl::OkStatus() : log_->health(); }
  CheckpointStatistics checkpoint_statistics() const {
    return checkpointer_ == nullptr ? CheckpointStatistics{} : checkpointer_->statistics();
  }
  std::string Description() const { return files_ == nullptr ? "" : files_->Description(); }
  // Number for a transaction of several nodes that this node coordinates.
  uint64_t NextTransactionId();

 private:
  Durability(const LocalNode* local, std::unique_ptr<EpochWords> words, std::byte* removals);
  bool IsLogged() const;
  // True if only a checkpoint makes something durable that is in memory.
  bool has_unlogged() const;
  void TellOfRecovery() const;
  void TellOfHealth(const Status& health) const;
  Status TakeDirectory(Catalog* catalog);
  Status RecoverTables(uint64_t generation, log::LogEnd* end);
  Status StartLog(const log::LogEnd& end, const log::Identity& run);
  Status Stop();
  Status NoteTables(uint32_t next_table, uint64_t generation);
  Status NoteStarted(const log::Identity& run);

  const LocalNode* local_;
  std::unique_ptr<EpochWords> words_;
  RemovalVersions removals_;
  UnsavedLoads loads_;
  std::shared_ptr<log::FileSystem> files_;  // null: there is no directory
  std::string directory_;                   // of this node
  std::shared_ptr<void> lock_;
  std::unique_ptr<ManifestFile> manifest_;      // null: there is no directory
  std::unique_ptr<log::Log> log_;               // null without a directory, and before Start
  std::unique_ptr<Checkpointer> checkpointer_;  // null unless the log runs
  RecoveryReport recovery_;
  std::atomic<uint64_t> transaction_ids_{0};
  bool stopped_ = false;
};

}  // namespace gannet::txn
