// The data directory of a database, for callers that do not open the database.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "log/file/file_system.h"
#include "txn/database.h"
#include "txn/durable/data_directory.h"

namespace gannet::cli {

using txn::IsAbsentOrEmpty;
using txn::NodeData;
using txn::ReadDataDirectory;

// The operating system's files. They can read what any medium has written.
std::shared_ptr<log::FileSystem> DiskFiles();
// The files with which the medium is written.
std::shared_ptr<log::FileSystem> FilesOf(txn::LogMedium medium);

// The process that has `directory`, of a single node, open; nothing if none has, or if that cannot be found out. Takes
// no lock, which could turn another process away.
std::optional<int> HolderOf(const std::string& directory);

// InvalidArgument, with the names of the existing tables, if `node` has no table `table`.
Status CheckTableName(const std::string& flag, const std::string& table, const txn::NodeData& node);

}  // namespace gannet::cli
