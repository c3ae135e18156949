// What the operating system's errors mean to log/, and what the user can do.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace gannet::log::internal {

// `what` says what was tried, with the path: "writing /data/log-1 at 4096".
Status PosixError(int error, std::string_view what);
// Of fsync and the like: DataLoss, whatever the error, for nobody knows what is on disk.
Status SyncError(int error, std::string_view what);

}  // namespace gannet::log::internal
