// Backup of a data directory, also while another process uses it; and the restore.
//
// A backup has what a crash at some moment of the copying would have left: the newest checkpoint, and the log from its
// first segment on. The newest segment of each log is copied first, and each segment from back to front. A batch is on
// disk before the next one begins, so everything that a copied batch needs was on disk by then, and is copied later.
// The manifests of all nodes are read before any log: the epoch with which a checkpoint ends is in the logs by then.
// They are read again after the logs, for the tables that were created meanwhile.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "log/file/file_system.h"
#include "txn/durable/verify.h"
#include "txn/store/options.h"
#include "txn/store/statistics.h"

namespace gannet::txn {

struct LocalNode;

// `to` must be absent, in a directory that is there, or empty, and lie outside of `from` (else InvalidArgument).
// Verifies the copy at the end. After an error `to` is as it was. Copies again if a newer checkpoint replaced files
// during the copying. Cancelled soon after *stop (may be null) has become true: the incomplete copy is removed, or the
// message says why it is not.
StatusOr<Verification> BackUp(log::FileSystem& files, const std::string& from, const std::string& to,
                              const std::atomic<bool>* stop = nullptr);

// Verifies the backup, locks `to` (absent or empty) for this process, copies, and verifies the copy. Cancelled as in
// BackUp.
StatusOr<Verification> Restore(log::FileSystem& files, const std::string& backup, const std::string& to,
                               const std::atomic<bool>* stop = nullptr);

// Makes a new database in `to`, as BackUp does, of what a damaged directory still has; no process may use that. It has
// the same tables and an identity of its own, and begins with a checkpoint of all rows. `recover` recovers the nodes of
// `from` in memory with DatabaseOptions::salvage (Recover), in their order, and calls its argument for each. Secondary
// indexes are not complete then: rows may be there without their entries, and entries without their rows.
StatusOr<Verification> BackUpSalvaged(log::FileSystem& files, const std::string& from, const std::string& to,
                                      absl::FunctionRef<Status(const std::function<Status(const LocalNode&)>&)> recover,
                                      const std::atomic<bool>* stop = nullptr);

}  // namespace gannet::txn
