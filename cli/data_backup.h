// Backup of a data directory, also while another process works in it; and the way back.
//
// What a backup has is what a crash at some moment of the copying would have left: the newest checkpoint, and the log
// from its first segment on. Of each log the newest segment is copied first, and each segment from back to front: a
// batch is on disk before the next is begun, so whatever is copied, what it needs was there and is copied later. The
// manifests of all nodes are read before any log: an epoch that a checkpoint ends with is in the logs by then.
#pragma once

#include <atomic>
#include <string>

#include "base/status.h"
#include "cli/data_verify.h"
#include "log/file/file_system.h"

namespace gannet::cli {

// `to` must be absent or empty, and lie outside of `from` (else InvalidArgument). Verified at the end. Copies again if
// a file vanished meanwhile because a newer checkpoint took its place. Cancelled soon after *stop (may be null) has
// become true: what was made of the copy is removed, or the message says why it is not.
StatusOr<Verification> BackUp(log::FileSystem& files, const std::string& from, const std::string& to,
                              const std::atomic<bool>* stop = nullptr);

// Verifies the backup, takes `to` (absent or empty) for this process, copies, verifies. Cancelled as BackUp.
StatusOr<Verification> Restore(log::FileSystem& files, const std::string& backup, const std::string& to,
                               const std::atomic<bool>* stop = nullptr);

}  // namespace gannet::cli
