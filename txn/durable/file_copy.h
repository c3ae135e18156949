// Copies of the files of a data directory, made durable.
#pragma once

#include <atomic>
#include <string>

#include "base/status.h"
#include "log/file/file_system.h"

namespace gannet::txn {

// Makes a new file at `to` with the content of `from`, in its length at the begin of the copying; reads from back to
// front. Does not write zeros at the end. NotFound if `from` is not there. Cancelled soon after *stop (may be null) has
// become true; a part of the new file may then be there.
Status CopyFileBackwards(log::FileSystem& files, const std::string& from, const std::string& to,
                         const std::atomic<bool>* stop = nullptr);

// Removes the content of a directory. Ok if there is none.
Status EmptyTree(log::FileSystem& files, const std::string& directory);

}  // namespace gannet::txn
