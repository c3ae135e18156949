#include "txn/offline.h"

#include <vector>

#include "txn/durable/catalog.h"
#include "txn/durable/data_directory.h"
#include "txn/durable/recovery.h"
#include "txn/run/database_state.h"
#include "txn/schema/new_table.h"

namespace gannet::txn {

Status AdoptTables(Database& database, log::FileSystem& files, const std::string& directory) {
  const StatusOr<std::vector<NodeData>> nodes = ReadDataDirectory(files, directory);
  if (!nodes.ok()) return nodes.status();
  const StatusOr<Catalog> catalog = CatalogOf(*nodes);
  if (!catalog.ok()) return catalog.status();
  return AdoptTables(database.state(), *catalog);
}

Status RecoverInto(Database& database, log::FileSystem& files, const std::string& directory, log::LogEnd* end,
                   RecoveryReport* report) {
  GANNET_RETURN_IF_ERROR(MakeIndexes(database.state()));
  const StatusOr<std::vector<NodeData>> nodes = ReadDataDirectory(files, directory);
  if (!nodes.ok()) return nodes.status();
  return Recover(LocalNodeOf(database), files, directory, *nodes, end, report);
}

const LocalNode& LocalNodeOf(Database& database) {
  return *database.state().local;
}

}  // namespace gannet::txn
