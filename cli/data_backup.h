// Backup of a data directory, also while another process works in it; and the way back.
//
// What a backup has is what a crash at some moment of the copying would have left: the newest checkpoint, and the log
// from its first segment on. Of each log the newest segment is copied first, and each segment from back to front: a
// batch is on disk before the next is begun, so whatever is copied, what it needs was there and is copied later. The
// manifests of all nodes are read before any log: an epoch that a checkpoint ends with is in the logs by then.
#pragma once

#include <string>

#include "cli/data_verify.h"
#include "log/file/file_system.h"
#include "rdma/base/status.h"

namespace gannet::cli {

// `to` must be absent or empty. Verified at the end. Copies again if a file vanished meanwhile because a newer
// checkpoint took its place.
StatusOr<Verification> BackUp(log::FileSystem& files, const std::string& from, const std::string& to);

// Verifies the backup, takes `to` (absent or empty) for this process, copies, verifies.
StatusOr<Verification> Restore(log::FileSystem& files, const std::string& backup, const std::string& to);

}  // namespace gannet::cli
