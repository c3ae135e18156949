// TransactionStatistics: how the transactions of a node ended, and what they read and wrote. Plain data for reports
// (Database::transaction_statistics); txn/session/transaction_meter.h counts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/duration_histogram.h"

namespace gannet::txn {

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

// Counted since the node was opened.
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

}  // namespace gannet::txn
