#include "cli/data/recover.h"

#include <utility>

#include "cli/common/data_directory.h"
#include "log/log.h"
#include "rdma/shm/shm_fabric.h"
#include "txn/durable/catalog.h"
#include "txn/offline.h"

namespace gannet::cli {
StatusOr<std::vector<NodeRecovery>> RecoverDataDirectory(log::FileSystem& files, const std::string& directory,
                                                         const RecoverOptions& options,
                                                         const std::function<Status(txn::Database&)>& visit) {
  const StatusOr<std::vector<NodeData>> nodes = ReadDataDirectory(files, directory);
  if (!nodes.ok()) return nodes.status();
  auto fabric = rdma::ShmFabric::InProcess(
      {.num_nodes = static_cast<int>(nodes->size()), .bytes_per_node = options.memory_per_node});
  if (!fabric.ok()) return fabric.status();
  std::vector<NodeRecovery> result;
  for (const NodeData& node : *nodes) {
    // A database without a directory takes no lock and writes no log.
    txn::DatabaseOptions in_memory;
    in_memory.recovery_threads = options.threads;
    in_memory.salvage = options.salvage;
    in_memory.stop = options.stop;
    auto database = txn::Database::Open(fabric->get(), node.manifest.node, in_memory);
    if (!database.ok()) return database.status();
    GANNET_RETURN_IF_ERROR(txn::AdoptTables(**database, files, directory));
    log::LogEnd end;
    NodeRecovery recovery{.path = node.path, .report = {}};
    GANNET_RETURN_IF_ERROR(txn::RecoverInto(**database, files, directory, &end, &recovery.report));
    if (visit) GANNET_RETURN_IF_ERROR(visit(**database));
    result.push_back(std::move(recovery));
  }
  return result;
}

std::vector<std::string> LeftOut(const std::vector<NodeRecovery>& nodes) {
  std::vector<std::string> all;
  for (const NodeRecovery& node : nodes) all.insert(all.end(), node.report.damages.begin(), node.report.damages.end());
  return all;
}

}  // namespace gannet::cli
