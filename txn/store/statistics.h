// Statistics of a database: plain data for reports.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "base/status.h"
#include "index/types.h"

namespace gannet::txn {

// Counts of a table's part on one node (Database::table_statistics).
struct TableStatistics {
  std::string table;
  std::string index_kind;
  uint64_t record_bytes = 0;        // blocks of this node's live records
  uint64_t own_location_bytes = 0;  // DatabaseOptions::own_location_bytes
  // Times that this node met damage when it changed or walked the index: what clients wrote into it against its rules
  // (docs/security.md).
  uint64_t index_damages = 0;
  index::Statistics index = {};
};

// The results of Start's recovery from the data directory.
struct RecoveryReport {
  uint64_t recovered_epoch = 0;
  uint64_t last_commit_wall_nanos = 0;  // when the last batch of the log was written; since 1970
  uint64_t log_segments = 0;
  uint64_t log_bytes = 0;
  uint64_t transactions = 0;         // in the log
  uint64_t changes = 0;              // in the log
  uint64_t undone_transactions = 0;  // in the log, but of an epoch that was not complete
  uint64_t undecided_parts = 0;      // of transactions of several nodes that never committed
  uint64_t checkpoint_id = 0;        // the newest; 0: none
  uint64_t checkpoint_bytes = 0;
  // If files of the newest checkpoint were damaged, the previous checkpoint and the log gave the same tables: nothing
  // is lost. 0: that was not needed. The next checkpoint replaces the damaged one.
  uint64_t older_checkpoint_id = 0;
  std::vector<std::string> replaced;  // the damage, one for each of these tables
  uint64_t records = 0;               // in memory now
  double log_seconds = 0;
  double load_seconds = 0;
  uint64_t peak_memory_bytes = 0;  // of the process
  bool torn_tail = false;
  std::vector<std::string> damages;  // what was left out; only with DatabaseOptions::salvage
};

// What the checkpoints of one node have done since it started: those of Database::Checkpoint, those at an interval
// (DatabaseOptions::checkpoint_every), and those that the size of the log causes (checkpoint_log_multiple).
struct CheckpointStatistics {
  uint64_t taken = 0;
  uint64_t failed = 0;
  uint64_t automatic = 0;  // attempts because of the size of the log, among both
  uint64_t bytes = 0;      // of all that were taken
  double seconds = 0;      // of the last one
  Status last_status = {};
  // Bytes of log that recovery would read: since the newest checkpoint began, with what earlier runs left.
  uint64_t log_bytes = 0;
};

// How often transactions of a node starved, and the cost for others. Counted at this node since it was opened.
struct PrecedenceStatistics {
  uint64_t asked = 0;          // times that a transaction of this node lost for too long
  uint64_t tickets = 0;        // drawn by this node
  uint64_t expired = 0;        // tickets of this node that ended with their lease
  uint64_t held_up = 0;        // commits of this node that waited for the transaction with precedence
  uint64_t held_up_nanos = 0;  // the sum of their waiting times
};

// Why an attempt was aborted, so that it has to run again.
enum class AbortCause : uint8_t {
  kLock,    // another transaction had locked a record that it wanted
  kRow,     // another transaction had changed a row that it had read
  kIndex,   // an index had changed where it had read: a key came or went, or a page was split
  kTable,   // a table is being widened or arranged, or an index is being made
  kLog,     // the log of another node had no room for its changes
  kMemory,  // this node's memory was full, and removed rows had to become free first
  kBody,    // its body asked for another attempt: it returned Aborted itself
};
inline constexpr size_t kAbortCauses = 7;
// The names by AbortCause; also the labels of metrics.
inline constexpr std::array<const char*, kAbortCauses> kAbortCauseNames = {"lock", "row",    "index", "table",
                                                                           "log",  "memory", "body"};

// How the transactions of a node ended, and what they read and wrote, since it was opened
// (txn/session/transaction_meter.h counts).
struct TransactionStatistics {
  uint64_t commits_of_readers = 0;  // of transactions that wrote nothing
  uint64_t commits_of_writers = 0;
  uint64_t rollbacks = 0;  // ended by an error that is no conflict, or by Rollback
  std::array<uint64_t, kAbortCauses> aborts{};
  uint64_t rows_read = 0;  // by all attempts; rows that they changed, too
  // The rows of committed transactions.
  uint64_t rows_inserted = 0;
  uint64_t rows_updated = 0;
  uint64_t rows_removed = 0;
  // The times from the begin of a commit that writes to its result. They are those of all commits that wait for the
  // disk, of one in kCommitsPerSample of others.
  DurationCounts commits;

  static constexpr uint64_t kCommitsPerSample = 64;

  TransactionStatistics& operator+=(const TransactionStatistics& other) {
    commits_of_readers += other.commits_of_readers;
    commits_of_writers += other.commits_of_writers;
    rollbacks += other.rollbacks;
    for (size_t i = 0; i < aborts.size(); ++i) aborts[i] += other.aborts[i];
    rows_read += other.rows_read;
    rows_inserted += other.rows_inserted;
    rows_updated += other.rows_updated;
    rows_removed += other.rows_removed;
    commits += other.commits;
    return *this;
  }
};

// How transactions reached records of other nodes (txn/path/offload_chooser.h chooses).
enum class AccessPath : uint8_t { kOneSided, kCall };

enum class AccessKind : uint8_t { kGet, kGetMany, kScan, kSearch, kChange, kInsert, kRemove };
inline constexpr size_t kAccessKinds = 7;
// The names by AccessKind; also the keys of JSON reports and the labels of metrics.
inline constexpr std::array<const char*, kAccessKinds> kAccessKindNames = {"get",    "get_many", "scan",  "search",
                                                                           "change", "insert",   "remove"};

// The accesses of one kind to one table. A GetMany counts once for each table and node that it asks.
struct PathStatistics {
  uint64_t one_sided = 0;
  uint64_t calls = 0;

  // The members below count both paths, with ReadPathPolicy::kAdaptive.
  uint64_t backed_off = 0;     // one-sided although a call seemed cheaper: the owner announced that it is busy
  uint64_t estimated = 0;      // accesses for which both paths were compared; the sums below are of these
  double one_sided_nanos = 0;  // estimated cost of the one-sided path, summed
  double call_nanos = 0;       // estimated cost of the call, summed
  uint64_t contrary = 0;       // went the dearer path, to measure it
  double contrary_nanos = 0;   // what these took longer than the cheaper path was estimated to take, summed

  uint64_t accesses() const { return one_sided + calls; }
  // Averages in nanoseconds; 0 if there is nothing to average.
  double one_sided_estimate() const { return Each(one_sided_nanos, estimated); }
  double call_estimate() const { return Each(call_nanos, estimated); }
  double contrary_cost() const { return Each(contrary_nanos, contrary); }

  PathStatistics& operator+=(const PathStatistics& other) {
    one_sided += other.one_sided;
    calls += other.calls;
    backed_off += other.backed_off;
    estimated += other.estimated;
    one_sided_nanos += other.one_sided_nanos;
    call_nanos += other.call_nanos;
    contrary += other.contrary;
    contrary_nanos += other.contrary_nanos;
    return *this;
  }
  // `earlier`: the same statistics at an earlier time.
  PathStatistics Since(const PathStatistics& earlier) const {
    PathStatistics since = *this;
    since.one_sided -= earlier.one_sided;
    since.calls -= earlier.calls;
    since.backed_off -= earlier.backed_off;
    since.estimated -= earlier.estimated;
    since.one_sided_nanos -= earlier.one_sided_nanos;
    since.call_nanos -= earlier.call_nanos;
    since.contrary -= earlier.contrary;
    since.contrary_nanos -= earlier.contrary_nanos;
    return since;
  }

 private:
  static double Each(double sum, uint64_t count) { return count == 0 ? 0 : sum / static_cast<double>(count); }
};

struct TablePaths {
  std::string table;
  AccessKind kind;
  PathStatistics paths;
};

// Adds each entry of `part` to that of the same table and kind in *sum, or at its end.
inline void AddPaths(const std::vector<TablePaths>& part, std::vector<TablePaths>* sum) {
  for (const TablePaths& each : part) {
    const auto same = std::find_if(sum->begin(), sum->end(), [&each](const TablePaths& other) {
      return other.table == each.table && other.kind == each.kind;
    });
    if (same == sum->end()) {
      sum->push_back(each);
    } else {
      same->paths += each.paths;
    }
  }
}

// The difference between two times. Entries without an access are left out.
inline std::vector<TablePaths> PathsBetween(const std::vector<TablePaths>& earlier,
                                            const std::vector<TablePaths>& later) {
  std::vector<TablePaths> between;
  for (const TablePaths& each : later) {
    TablePaths since = each;
    for (const TablePaths& before : earlier) {
      if (before.table == each.table && before.kind == each.kind) since.paths = each.paths.Since(before.paths);
    }
    if (since.paths.accesses() > 0) between.push_back(since);
  }
  return between;
}

}  // namespace gannet::txn
