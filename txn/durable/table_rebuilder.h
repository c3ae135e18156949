// Step 3 of recovery (recovery.h): the tables of one node from its checkpoint and the newest changes of its log.
#pragma once

#include <atomic>
#include <string>
#include <string_view>
#include <vector>

#include "index/index.h"
#include "log/checkpoint.h"
#include "log/file/file_system.h"
#include "rdma/base/status.h"
#include "rdma/base/thread.h"
#include "txn/database.h"
#include "txn/durable/latest_changes.h"
#include "txn/session_internal.h"

namespace gannet::txn {

log::TableDescription DescribeTable(const Table& table);

class TableRebuilder {
 public:
  // All must outlive this. `changes` is used up.
  TableRebuilder(DatabaseState* state, log::FileSystem* files, const std::string& directory,
                 const log::CheckpointDescription& checkpoint, LatestChanges* changes)
      : state_(state),
        files_(files),
        directory_(directory),
        checkpoint_(checkpoint),
        changes_(changes),
        bytes_(state->tables.size()) {}

  // By `threads` threads; the pieces of work are ordered tables, and files and parts of hash tables.
  Status RebuildAll(int threads, RecoveryReport* report);

 private:
  class OrderedRebuild;

  Status RebuildOrdered(const Table& table);
  Status LoadHashFile(const Table& table, const log::CheckpointFile& file);
  Status AddHashChanges(const Table& table, size_t part);
  // Makes a committed record in this node's memory; InvalidArgument if it does not fit the table.
  StatusOr<rdma::GlobalAddress> MakeRecord(index::Context& context, const Table& table, std::string_view key,
                                           std::string_view payload);
  Status AddToHash(index::Context& context, const Table& table, std::string_view key, std::string_view payload);
  // True if the log has something newer of the key than the checkpoint.
  bool IsSuperseded(const log::CheckpointRecord& record);
  void NoteDamage(const log::CheckpointFile& file, uint64_t offset, const std::string& what);

  DatabaseState* state_;
  log::FileSystem* files_;
  std::string directory_;
  const log::CheckpointDescription& checkpoint_;
  LatestChanges* changes_;
  std::atomic<uint64_t> records_{0};
  std::vector<std::atomic<int64_t>> bytes_;  // of records, by table
  Mutex damages_mutex_;
  std::vector<std::string> damages_;
};

}  // namespace gannet::txn
