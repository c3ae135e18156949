// LogEnd: where a log ends.
#pragma once

#include <cstdint>

#include "log/format/identity.h"

namespace gannet::log {

// End of a log (log_reader.h finds it), where a new run begins. All zeros: there is no log yet.
struct LogEnd {
  uint64_t segment = 0;  // number of the last segment
  uint64_t offset = 0;   // of the first byte after its last valid batch
  uint64_t next_batch = 1;
  uint64_t run = 0;              // of the last segment
  Identity run_identity{};       // of that run; not known: its segments are from before version 5
  uint64_t recovered_epoch = 0;  // everything up to it is in the logs of all nodes
  uint64_t last_epoch = 0;       // greatest epoch seen anywhere, recovered or void
  bool has_header = true;        // the last segment has one; false: a crash interrupted its creation
};

}  // namespace gannet::log
