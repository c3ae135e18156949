// LogStatistics: what a log has written.
#pragma once

#include <cstdint>

#include "base/metrics.h"

namespace gannet::log {

struct LogStatistics {
  uint64_t transactions = 0;
  uint64_t changes = 0;
  uint64_t payload_bytes = 0;  // of the changes, without keys and headers
  uint64_t record_bytes = 0;   // of the transactions, with them
  uint64_t disk_bytes = 0;     // of the batches, with headers and padding
  uint64_t batches = 0;
  uint64_t segments = 0;        // begun in this run
  uint64_t failures = 0;        // segments given up because of an error
  DurationCounts flushes = {};  // a batch each: its write and its sync
};

}  // namespace gannet::log
