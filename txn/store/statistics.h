// The reports of a database about its tables, and about the recovery when it started.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "index/index.h"

namespace gannet::txn {

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

}  // namespace gannet::txn
