// Opens, for tools, the tables of a data directory in a database that has no directory itself, and was not started.
#pragma once

#include <string>

#include "base/status.h"
#include "log/file/file_system.h"
#include "log/log.h"
#include "txn/database.h"

namespace gannet::txn {

struct LocalNode;

// Gives the database the tables of the directory. RecoverInto comes next. (A database with DatabaseOptions::directory
// has them after Database::Open.)
Status AdoptTables(Database& database, log::FileSystem& files, const std::string& directory);

// Restores the rows of this node: Recover of txn/durable/recovery.h.
Status RecoverInto(Database& database, log::FileSystem& files, const std::string& directory, log::LogEnd* end,
                   RecoveryReport* report);

const LocalNode& LocalNodeOf(Database& database);

}  // namespace gannet::txn
