#include "cli/data_recover.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/data_directory.h"
#include "index/registry.h"
#include "log/log.h"
#include "rdma/shm/shm_fabric.h"
#include "txn/durable/recovery.h"

namespace gannet::cli {
namespace {

// A table as the manifest describes it. Recovery compares only what the manifest knows about its placement; each node
// recovers its own rows.
StatusOr<txn::TableOptions> TableOf(const log::TableDescription& description) {
  const StatusOr<index::IndexKind> kind = index::IndexKindOf(description.index);
  if (!kind.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("table '", description.name, "' of the manifest: ", kind.status().message()));
  }
  txn::Placement placement = description.replicated ? txn::Placement::Replicated() : txn::Placement::ByHash();
  if (!description.range_starts.empty()) {
    StatusOr<txn::Placement> by_range = txn::Placement::ByRangeTexts(description.range_starts);
    if (!by_range.ok()) {
      return absl::DataLossError(
          absl::StrCat("table '", description.name, "' of the manifest: ", by_range.status().message()));
    }
    placement = *std::move(by_range);
  }
  return txn::TableOptions{.name = description.name,
                           .key_kind = description.integer_keys ? index::KeyKind::kInteger : index::KeyKind::kBytes,
                           .max_key_bytes = description.max_key_bytes,
                           .index = *kind,
                           .index_options = description.index_options,
                           .payload_bytes = description.payload_bytes,
                           .variable_length = description.variable_length,
                           .expected_rows = description.expected_rows,
                           .placement = std::move(placement)};
}

}  // namespace

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
    for (const log::TableDescription& table : node.manifest.tables) {
      const StatusOr<txn::TableOptions> table_options = TableOf(table);
      GANNET_RETURN_IF_ERROR(table_options.status());
      GANNET_RETURN_IF_ERROR((*database)->CreateTable(*table_options).status());
    }
    log::LogEnd end;
    NodeRecovery recovery{.path = node.path, .report = {}};
    GANNET_RETURN_IF_ERROR(txn::Recover(**database, files, directory, &end, &recovery.report));
    if (visit) GANNET_RETURN_IF_ERROR(visit(**database));
    result.push_back(std::move(recovery));
  }
  return result;
}

}  // namespace gannet::cli
