#include "cli/rows/row_store.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/common/data_directory.h"
#include "cli/common/words.h"
#include "log/log.h"
#include "txn/durable/catalog.h"
#include "txn/offline.h"

namespace gannet::cli {
namespace {

// A command that writes and finds more segments of the log takes a checkpoint, which removes them: each command begins
// a small one, and recovery opens all of them.
constexpr uint64_t kMostSegments = 32;

Status CheckOneNode(const std::string& directory, const StatusOr<std::vector<NodeData>>& nodes) {
  if (!nodes.ok()) return nodes.status();
  if (nodes->size() == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(directory, " holds a database of ", nodes->size(),
                                                 " nodes, and this command is for one; gannet tables and gannet export "
                                                 "work with several"));
}

}  // namespace

StatusOr<std::unique_ptr<RowStore>> RowStore::OpenToRead(const std::string& directory, const RowStoreOptions& options) {
  const std::shared_ptr<log::FileSystem> files = DiskFiles();
  GANNET_RETURN_IF_ERROR(CheckOneNode(directory, ReadDataDirectory(*files, directory)));
  std::unique_ptr<RowStore> store(new RowStore(directory));
  // A database without a directory takes no lock and writes no log.
  txn::DatabaseOptions in_memory;
  in_memory.memory_bytes = options.memory_bytes;
  in_memory.recovery_threads = options.threads;
  in_memory.run_sessions = 1;
  in_memory.salvage = options.salvage;
  in_memory.stop = options.stop;
  auto database = txn::Database::OpenInMemory(in_memory);
  if (!database.ok()) return database.status();
  store->database_ = *std::move(database);
  GANNET_RETURN_IF_ERROR(txn::AdoptTables(*store->database_, *files, directory));
  log::LogEnd end;
  txn::RecoveryReport report;
  GANNET_RETURN_IF_ERROR(txn::RecoverInto(*store->database_, *files, directory, &end, &report));
  store->left_out_ = std::move(report.damages);
  GANNET_RETURN_IF_ERROR(store->database_->Start());
  return store;
}

StatusOr<std::unique_ptr<RowStore>> RowStore::OpenToWrite(const std::string& directory,
                                                          const RowStoreOptions& options) {
  const std::shared_ptr<log::FileSystem> files = DiskFiles();
  const StatusOr<std::vector<NodeData>> nodes = ReadDataDirectory(*files, directory);
  if (!options.create || !absl::IsNotFound(nodes.status())) GANNET_RETURN_IF_ERROR(CheckOneNode(directory, nodes));
  std::unique_ptr<RowStore> store(new RowStore(directory));
  store->writes_ = true;
  txn::DatabaseOptions durable;
  durable.create_if_missing = options.create;
  durable.recovery_threads = options.threads;
  durable.run_sessions = 1;
  durable.memory_bytes = options.memory_bytes;
  durable.stop = options.stop;
  durable.files = files;
  auto database = txn::Database::Open(directory, durable);
  if (!database.ok()) return database.status();
  store->database_ = *std::move(database);
  GANNET_RETURN_IF_ERROR(store->database_->Start());
  return store;
}

StatusOr<const txn::Table*> RowStore::FindTable(const std::string& name) const {
  if (const txn::Table* table = database_->FindTable(name); table != nullptr) return table;
  std::vector<std::string> names;
  for (const txn::Table* table : database_->tables()) names.push_back(table->name());
  if (const std::string nearest = Nearest(name, names); !nearest.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(directory_, " has no table '", name, "'; did you mean ", nearest, "?"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      directory_, " has no table '", name, "'; it has ", names.empty() ? "none" : absl::StrJoin(names, ", "),
      ". To make one: gannet create-table ", directory_, " ", name, " --key integer|bytes --payload N"));
}

Status RowStore::Close() {
  if (!writes_) return absl::OkStatus();
  if (database_->recovery().log_segments + database_->log_statistics().segments > kMostSegments) {
    GANNET_RETURN_IF_ERROR(database_->Checkpoint());
  }
  return database_->Close();
}

}  // namespace gannet::cli
