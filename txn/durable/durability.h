// What a database with a data directory has beside the tables: the directory's lock, the log, the epochs that it shares
// with other nodes, checkpoints. Made by Database::Open, starts with Database::Start.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/status.h"
#include "log/file/file_system.h"
#include "log/log.h"
#include "txn/database.h"
#include "txn/durable/checkpointer.h"
#include "txn/durable/epoch_words.h"
#include "txn/durable/removal_versions.h"

namespace gannet::txn {

class Durability {
 public:
  // Takes the directory for this process; creates the database if the options say so (data_directory.h).
  static StatusOr<std::unique_ptr<Durability>> Open(DatabaseState* state);
  ~Durability();

  // Recovers the tables; when all nodes have done that (start_together.h), notes them in the manifest, and starts the
  // log. Once only.
  Status Start(std::unique_ptr<EpochWords> words, absl::Duration wait_for_others);
  // The start of this node failed, here or later: the other nodes learn why, and nobody waits for this one.
  void NoteFailedStart(const Status& why);
  // Flushes, stops, and gives the directory back.
  Status Stop();

  log::Log& log() { return *log_; }
  RemovalVersions& removals() { return removals_; }
  EpochWords& words() { return *words_; }
  Checkpointer& checkpointer() { return *checkpointer_; }
  log::FileSystem& files() { return *files_; }
  bool started() const { return log_ != nullptr; }
  const RecoveryReport& recovery() const { return recovery_; }
  const std::string& directory() const { return directory_; }
  // Numbers transactions of several nodes that this node coordinates.
  uint64_t NextTransactionId();

 private:
  explicit Durability(DatabaseState* state) : state_(state) {}
  void RemoveUnfinished();
  Status NoteTables();
  Status NoteStarted();

  DatabaseState* state_;
  std::shared_ptr<log::FileSystem> files_;
  std::string directory_;  // of this node
  std::shared_ptr<void> lock_;
  std::unique_ptr<EpochWords> words_;
  std::unique_ptr<log::Log> log_;
  std::unique_ptr<Checkpointer> checkpointer_;
  RemovalVersions removals_;
  RecoveryReport recovery_;
  std::atomic<uint64_t> transaction_ids_{0};
  bool stopped_ = false;
};

}  // namespace gannet::txn
