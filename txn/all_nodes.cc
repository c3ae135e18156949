#include "txn/all_nodes.h"

#include <vector>

#include "base/thread.h"
#include "txn/schema/schema.h"

namespace gannet::txn {

namespace {

// A change of the tables of all nodes of a fabric.
template <class Change>
Status ChangeSchema(std::span<Database* const> databases, const Change& change) {
  std::vector<DatabaseState*> nodes;
  for (Database* const database : databases) nodes.push_back(database == nullptr ? nullptr : &database->state());
  const StatusOr<std::vector<DatabaseState*>> ordered = InOrder(nodes);
  return ordered.ok() ? change(Schema(*ordered)) : ordered.status();
}

}  // namespace

Status OnAllNodes(std::span<Database* const> databases, Status (*work)(Database&)) {
  std::vector<Status> statuses(databases.size());
  std::vector<Thread> threads;
  for (size_t i = 0; i < databases.size(); ++i) {
    threads.emplace_back("node", [=, &statuses] { statuses[i] = work(*databases[i]); });
  }
  for (Thread& thread : threads) thread.join();
  for (const Status& status : statuses) GANNET_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

Status CreateTableOnAllNodes(std::span<Database* const> databases, const TableOptions& options) {
  return ChangeSchema(databases, [&](Schema schema) { return schema.CreateTable(options).status(); });
}

Status RenameTableOnAllNodes(std::span<Database* const> databases, std::string_view from, const std::string& to) {
  return ChangeSchema(databases, [&](Schema schema) { return schema.RenameTable(from, to); });
}

Status DropTableOnAllNodes(std::span<Database* const> databases, std::string_view name) {
  return ChangeSchema(databases, [&](Schema schema) { return schema.DropTable(name); });
}

Status WidenTableOnAllNodes(std::span<Database* const> databases, std::string_view name, size_t payload_bytes) {
  return ChangeSchema(databases, [&](Schema schema) { return schema.WidenTable(name, payload_bytes); });
}

Status CreateIndexOnAllNodes(std::span<Database* const> databases, const SecondaryIndexOptions& options) {
  return ChangeSchema(databases, [&](Schema schema) { return schema.CreateIndex(options).status(); });
}

}  // namespace gannet::txn
