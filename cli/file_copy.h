// Copies of the files of a data directory, made durable.
#pragma once

#include <atomic>
#include <string>

#include "base/status.h"
#include "log/file/file_system.h"

namespace gannet::cli {

// A new file at `to` with the content of `from`, as long as it is when the copying begins; read from back to front.
// Zeros at its end are not written. NotFound if `from` is not there. Cancelled soon after *stop (may be null) has
// become true: a part of the new file may be there.
Status CopyFileBackwards(log::FileSystem& files, const std::string& from, const std::string& to,
                         const std::atomic<bool>* stop = nullptr);

// All files of a directory, into a new or empty one.
Status CopyFiles(log::FileSystem& files, const std::string& from, const std::string& to);

// Removes what is in a directory. Ok if there is none.
Status EmptyTree(log::FileSystem& files, const std::string& directory);

// Removes a directory and what is in it. Ok if there is none.
Status RemoveTree(log::FileSystem& files, const std::string& directory);

}  // namespace gannet::cli
