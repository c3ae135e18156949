// The records of a log, as text or as JSON.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>

#include "base/status.h"
#include "log/file/file_system.h"

namespace gannet::cli {

struct DumpOptions {
  bool json = false;  // one object per line and transaction
  uint64_t from_epoch = 0;
  std::string table;                        // only its changes; empty: all
  const std::atomic<bool>* stop = nullptr;  // may be null; true: Cancelled soon
};

// Each node's log in its order. InvalidArgument if there is no such table.
Status DumpLog(log::FileSystem& files, const std::string& directory, const DumpOptions& options, std::FILE* to);

}  // namespace gannet::cli
