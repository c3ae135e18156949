// Step 3 of recovery (recovery.h): the tables of one node from its checkpoint and the newest changes of its log.
//
// All threads work on all tables at once, in five rounds:
//
//   1. the files of the checkpoint: records are made of what the log has not changed; and the parts of the changes of
//      ordered tables: how many keys are in which of some ranges of about the same size
//   2. the parts again: their keys are put into these ranges
//   3. the ranges: each is sorted
//   4. the pieces of ordered tables that are in the checkpoint and in the log: each merges a range of keys of both
//   5. the ordered tables: the index of a large one is built in parts (index/parted_load.h), that of a small one, or of
//      a kind that has no parts, by one thread; and the parts of the changes of the other tables, which are put into
//      their indexes. Then the parts of each large index are put together by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/thread.h"
#include "index/index.h"
#include "log/checkpoint/checkpoint.h"
#include "log/file/file_system.h"
#include "log/format/identity.h"
#include "log/manifest/manifest.h"
#include "txn/durable/latest_changes.h"
#include "txn/durable/record_maker.h"
#include "txn/node/local_node.h"
#include "txn/store/options.h"
#include "txn/store/statistics.h"

namespace gannet::txn {

// A table that could not be made, because of a damaged file of the checkpoint.
struct DamagedTable {
  const Table* table = nullptr;
  Status damage;
};

class TableRebuilder {
 public:
  // All must outlive this. `database`: of the manifest. `changes` has those of the tables that are rebuilt.
  TableRebuilder(const LocalNode* local, log::FileSystem* files, const std::string& directory,
                 const log::Identity& database, const log::CheckpointDescription& checkpoint, LatestChanges* changes,
                 RecordCounts* counts)
      : local_(local),
        files_(files),
        directory_(directory),
        database_(database),
        checkpoint_(checkpoint),
        changes_(changes),
        counts_(counts),
        damages_(local->tables.id_bound()) {}

  // Fills `tables`, which are empty, with `threads` threads. Tables with a damaged file are empty afterwards, and
  // listed in *damaged; only their changes are still there.
  Status Rebuild(const std::vector<const Table*>& tables, int threads, std::vector<DamagedTable>* damaged);
  // Does what Rebuild does, but leaves out damaged blocks, which Report lists.
  Status Salvage(const std::vector<const Table*>& tables, int threads);
  // Adds the damages that were left out.
  void Report(RecoveryReport* report) const;

 private:
  class OrderedTable;
  using OnDamage = std::function<void(uint64_t offset, const std::string& what)>;
  using Work = std::vector<std::function<Status()>>;

  // Ok if `status` says that a file is damaged: the table is then given up, and the others continue.
  Status GiveUpIfDamaged(const Table& table, const Status& status);
  bool IsGivenUp(const Table& table);
  // Removes everything from a table without order.
  Status Empty(const Table& table);
  OnDamage DamageNoter(const log::CheckpointFile& file);

  Status AddFiles(const std::vector<const Table*>& tables, std::vector<OrderedTable>* ordered, Work* work);
  Status BuildOrdered(std::vector<OrderedTable>* ordered, Work* work);
  Status LoadUnorderedFile(const Table& table, const log::CheckpointFile& file);
  Status AddUnorderedChanges(const Table& table, size_t part);
  Status AddToUnordered(RecordMaker* maker, const Table& table, const index::Key& key, std::byte* record);
  // True if the log has a newer change of the key than the checkpoint.
  bool IsSuperseded(const Table& table, const HashedKey& key, const log::CheckpointRecord& record) const;
  // Calls take(key, record) for those of the records of a table that are not superseded.
  template <class Take>
  Status TakeUnchanged(const Table& table, std::span<const log::CheckpointRecord> records, const Take& take);

  const LocalNode* local_;
  log::FileSystem* files_;
  std::string directory_;
  const log::Identity database_;
  const log::CheckpointDescription& checkpoint_;
  LatestChanges* changes_;
  RecordCounts* counts_;
  bool salvage_ = false;
  Mutex mutex_;                  // guards the next two
  std::vector<Status> damages_;  // by table: why it was given up
  std::vector<std::string> left_out_;
};

}  // namespace gannet::txn
