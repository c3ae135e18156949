// Checks everything in a data directory, and changes nothing.
//
// The checks: every checksum of the log and of all checkpoints; the files are those that the manifest names; every
// record fits its table; ordered tables are in order, without duplicate keys; the log continues where the newest
// checkpoint ends; the nodes belong together.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "log/file/damage.h"
#include "log/file/file_system.h"
#include "log/segment/log_reader.h"

namespace gannet::txn {

using Problem = log::Damage;

struct NodeVerification {
  std::string path;
  log::LogSummary log;
  uint64_t checkpoints = 0;
  uint64_t checkpoint_bytes = 0;  // of all checkpoints
  uint64_t checkpoint_records = 0;
};

struct Verification {
  std::vector<NodeVerification> nodes;
  std::vector<Problem> problems;   // empty: nothing is wrong
  std::vector<std::string> notes;  // unusual, but harmless
};

// Fails only if nothing can be checked: NotFound if there is no database, DataLoss if the manifest is damaged.
// Cancelled soon after *stop (may be null) has become true.
StatusOr<Verification> VerifyDataDirectory(log::FileSystem& files, const std::string& directory, int threads,
                                           const std::atomic<bool>* stop = nullptr);

// "log-0000000000000001 at offset 4096: what".
std::string ToText(const Problem& problem);

}  // namespace gannet::txn
