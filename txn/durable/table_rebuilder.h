// Step 3 of recovery (recovery.h): the tables of one node from its checkpoint and the newest changes of its log.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/thread.h"
#include "index/index.h"
#include "log/checkpoint.h"
#include "log/file/file_system.h"
#include "txn/database.h"
#include "txn/durable/latest_changes.h"
#include "txn/session/local_node.h"

namespace gannet::txn {

// A table that could not be made, because of a damaged file of the checkpoint.
struct DamagedTable {
  const Table* table = nullptr;
  Status damage;
};

class TableRebuilder {
 public:
  // All must outlive this.
  TableRebuilder(const LocalNode* local, log::FileSystem* files, const std::string& directory,
                 const log::CheckpointDescription& checkpoint, LatestChanges* changes)
      : local_(local),
        files_(files),
        directory_(directory),
        checkpoint_(checkpoint),
        changes_(changes),
        damages_(local->tables.id_bound()),
        bytes_(local->tables.id_bound()) {}

  // Fills `tables`, which are empty, with `threads` threads. The pieces of work are ordered tables, and files and parts
  // of hash tables. Tables with a damaged file are empty afterwards, and listed in *damaged.
  Status Rebuild(const std::vector<const Table*>& tables, int threads, std::vector<DamagedTable>* damaged);
  // The same, but leaves out damaged blocks, which Count reports.
  Status Salvage(const std::vector<const Table*>& tables, int threads);
  // Adds the results to the report and the database's counters. Call it once, at the end.
  void Count(RecoveryReport* report);

 private:
  class OrderedRebuild;
  using OnDamage = std::function<void(uint64_t offset, const std::string& what)>;

  Status LoadFiles(const std::vector<const Table*>& tables, int threads);
  Status AddChanges(const std::vector<const Table*>& tables, int threads);
  // Ok if `status` says that a file is damaged: the table is then given up, and the others continue.
  Status GiveUpIfDamaged(const Table& table, const Status& status);
  bool IsGivenUp(const Table& table);
  // Frees a record that no other thread has seen and that is in no index.
  void Discard(index::Context& context, const Table& table, rdma::GlobalAddress record);
  // Removes everything from a hash table.
  Status Empty(const Table& table);
  OnDamage DamageNoter(const log::CheckpointFile& file);

  Status RebuildOrdered(const Table& table);
  Status LoadUnorderedFile(const Table& table, const log::CheckpointFile& file);
  Status AddUnorderedChanges(const Table& table, size_t part);
  // Makes a committed record in this node's memory; InvalidArgument if it does not fit the table.
  StatusOr<rdma::GlobalAddress> MakeRecord(index::Context& context, const Table& table, std::string_view key,
                                           std::string_view payload);
  Status AddToUnordered(index::Context& context, const Table& table, std::string_view key, std::string_view payload);
  // True if the log has a newer change of the key than the checkpoint.
  bool IsSuperseded(const log::CheckpointRecord& record);

  const LocalNode* local_;
  log::FileSystem* files_;
  std::string directory_;
  const log::CheckpointDescription& checkpoint_;
  LatestChanges* changes_;
  bool salvage_ = false;
  std::atomic<uint64_t> records_{0};
  Mutex mutex_;                  // guards the next two
  std::vector<Status> damages_;  // by table: why it was given up
  std::vector<std::string> left_out_;
  std::vector<std::atomic<int64_t>> bytes_;  // of records, by table
};

}  // namespace gannet::txn
