// What the checkpoints of one node have done since it started: those of Database::Checkpoint, those at an interval
// (DatabaseOptions::checkpoint_every), and those that the size of the log causes (checkpoint_log_multiple).
#pragma once

#include <cstdint>

#include "base/status.h"

namespace gannet::txn {

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

}  // namespace gannet::txn
