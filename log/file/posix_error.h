// Status for an error of the operating system, with advice for the user.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace gannet::log::internal {

// `what` says what was tried, with the path: "writing /data/log-1 at 4096".
Status PosixError(int error, std::string_view what);
// Errors of fsync and similar calls are always DataLoss, because the content on disk is unknown.
Status SyncError(int error, std::string_view what);

}  // namespace gannet::log::internal
