// A directory with the data of a database, seen from outside: by those who do not open the database.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "log/file/file_system.h"
#include "txn/database.h"
#include "txn/durable/data_directory.h"

namespace gannet::cli {

using txn::NodeData;
using txn::ReadDataDirectory;

// The operating system's files. Any medium's can be read with it.
std::shared_ptr<log::FileSystem> DiskFiles();
// What the medium's files are written with.
std::shared_ptr<log::FileSystem> FilesOf(txn::LogMedium medium);

// InvalidArgument, with the names of the tables that there are, if `node` has no table `table`.
Status CheckTableName(const std::string& flag, const std::string& table, const txn::NodeData& node);

// True if it is not there, or has nothing in it but what a file system makes by itself, and the empty directories that
// the creation of a database leaves if it was interrupted early.
StatusOr<bool> IsAbsentOrEmpty(log::FileSystem& files, const std::string& directory);

}  // namespace gannet::cli
