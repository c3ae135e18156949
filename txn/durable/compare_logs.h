// Whether the logs of all nodes of a database belong together: recovery and `gannet verify` ask.
//
// No node closes an epoch in a run before every node has begun that run (epoch_words.h). So every log has the last run
// of any log that closed an epoch, and one that lacks it is older, or went on separately from a copy.
// Then commits that were acknowledged are missing in it, also if its epochs fit by chance. Runs are recognised by their
// identity (log/format/segment_format.h); runs from before version 5 of the log only by the epoch with which they
// began.
//
// A log may lack a run of another one that closed nothing: a crash while the nodes began their runs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "log/segment/log_reader.h"
#include "txn/durable/data_directory.h"

namespace gannet::txn {

struct LogsTogether {
  // The last epoch that counts: all nodes recover it. If there are problems, so that only salvage continues: the last
  // one that any log closed.
  uint64_t recovered_epoch = 0;
  std::vector<log::Damage> problems{};  // `file` is the directory of the node that has to be replaced
};

// `logs`: of the nodes, in their order. Each was read from a segment on that its newest checkpoint needs, or earlier.
LogsTogether CompareLogs(std::span<const NodeData> nodes, std::span<const log::LogSummary> logs);

}  // namespace gannet::txn
