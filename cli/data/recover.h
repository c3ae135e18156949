// Recovers a data directory into memory, without the program that made it and without changing anything, to examine the
// result and the duration.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "log/file/file_system.h"
#include "txn/database.h"

namespace gannet::cli {

struct NodeRecovery {
  std::string path;
  txn::RecoveryReport report;
  double seconds() const { return report.log_seconds + report.load_seconds; }
  uint64_t bytes_read() const { return report.log_bytes + report.checkpoint_bytes; }
};

struct RecoverOptions {
  int threads = 2;
  bool salvage = false;
  uint64_t memory_per_node = 0;
  const std::atomic<bool>* stop = nullptr;  // may be null; true: Cancelled soon
};

// Recovers one node after the other, and calls `visit` (may be null) for each when its tables are there. An error of
// `visit` ends it.
StatusOr<std::vector<NodeRecovery>> RecoverDataDirectory(log::FileSystem& files, const std::string& directory,
                                                         const RecoverOptions& options,
                                                         const std::function<Status(txn::Database&)>& visit = nullptr);

// Descriptions of all parts that salvage left out, of all nodes.
std::vector<std::string> LeftOut(const std::vector<NodeRecovery>& nodes);

}  // namespace gannet::cli
