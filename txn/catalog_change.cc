// Changes of the tables of all nodes of a fabric together, or of the only one. The steps of each are in the same order
// on all nodes, under the locks of all (NodeLocks): so all nodes always have the same tables with the same numbers.
//
// The commit point of several nodes is the first manifest that has the new generation, which is greater than every
// generation that a manifest may have (durable/catalog.h). If a later manifest cannot be written, the tables are
// written again as they were, as the generation after that one: one manifest that has it takes the change back.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "index/service.h"
#include "log/checkpoint.h"
#include "txn/all_nodes.h"
#include "txn/database.h"
#include "txn/database_state.h"
#include "txn/durable/catalog.h"
#include "txn/durable/durability.h"
#include "txn/node_locks.h"
#include "txn/store/key_status.h"

namespace gannet::txn {
namespace {

constexpr absl::string_view kInsteadOfRename =
    "use RenameTableOnAllNodes if all are in this process, or give every table its name before it";

}  // namespace

StatusOr<std::vector<Database*>> Database::InOrder(Nodes databases) {
  const auto wrong = [](auto&&... what) {
    return absl::InvalidArgumentError(absl::StrCat("the tables of all nodes are changed together: ", what...));
  };
  std::vector<Database*> nodes(databases.begin(), databases.end());
  if (nodes.empty() || std::ranges::find(nodes, nullptr) != nodes.end()) {
    return wrong("give the database of every node");
  }
  std::ranges::sort(nodes, {}, &Database::node_id);
  const rdma::Fabric* const fabric = nodes.front()->state_->fabric;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i]->state_->fabric != fabric) return wrong("these databases are of several fabrics");
    if (nodes[i]->node_id() != i) return wrong("node ", i, " is missing, or another one is there twice");
    if (!nodes[i]->state_->started) {
      return absl::FailedPreconditionError(
          absl::StrCat("call Database::Start of node ", i, " before its tables change"));
    }
  }
  const int of_fabric = fabric->num_nodes();
  if (std::ssize(nodes) != of_fabric) return wrong("the fabric has ", of_fabric, " nodes, not ", nodes.size());
  return nodes;
}

bool Database::TakeBackOn(Nodes nodes) {
  bool taken_back = false;
  for (Database* const node : nodes) {
    ++node->state_->catalog_generation;
    taken_back |= node->state_->durability->NoteCatalogNowOrLater(node->DescribeCatalog()).ok();
  }
  return taken_back;
}

Status Database::NoteOn(Nodes nodes, absl::string_view what, const std::function<void(Catalog*)>& edit,
                        bool* may_be_noted) {
  const bool several = nodes.size() > 1;
  if (several) {
    uint64_t newest = 0;
    for (const Database* node : nodes) newest = std::max(newest, node->state_->catalog_generation);
    for (Database* const node : nodes) node->state_->catalog_generation = newest + 1;
  }
  for (Database* const node : nodes) {
    Catalog catalog = node->DescribeCatalog();
    edit(&catalog);
    const Status noted = node->state_->durability->NoteCatalog(catalog);
    if (noted.ok()) continue;
    const Status why = several ? OfNode(*node, noted) : noted;
    const bool unsure = !several || !TakeBackOn(nodes);
    if (may_be_noted != nullptr) *may_be_noted = unsure;
    if (unsure) return NotNoted(what, why);
    return Status(why.code(), absl::StrCat("the manifest could not be written when ", what, ": ", why.message(),
                                           ". It was done on no node"));
  }
  return absl::OkStatus();
}

void Database::ForgetNewTable(Table& table) {
  state_->indexes->Remove(table.id());
  table.local_index_->ReleaseMemory();
  table.local_index_.reset();
  table.own_locations_.reset();
}

// All manifests have the table before a node's sessions can find it, so no log has a row of it before. And a session of
// one node finds it when all nodes serve it.
StatusOr<std::vector<Table*>> Database::MakeTableOn(Nodes nodes, const TableOptions& complete,
                                                    const std::function<void(size_t node, Table*)>& prepare) {
  uint32_t id = 0;
  for (const Database* node : nodes) id = std::max(id, node->state_->next_table);
  for (Database* const node : nodes) node->state_->next_table = id;
  std::vector<std::unique_ptr<Table>> tables;
  Status status;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto prepare_here = [&](Table* table) {
      if (prepare != nullptr) prepare(i, table);
    };
    StatusOr<std::unique_ptr<Table>> table = nodes[i]->PrepareTable(complete, prepare_here);
    if (!table.ok()) {
      status = nodes.size() > 1 ? OfNode(*nodes[i], table.status()) : table.status();
      break;
    }
    tables.push_back(*std::move(table));
    tables.back()->is_everywhere_.store(false, std::memory_order_release);
  }
  // Also after an error: a manifest may have the table.
  if (!tables.empty()) {
    for (Database* const node : nodes) ++node->state_->next_table;
  }
  if (status.ok()) {
    status = NoteOn(nodes, "a table is created",
                    [&](Catalog* catalog) { catalog->tables.push_back(DescribeTable(*tables.front())); });
  }
  if (!status.ok()) {
    for (size_t i = 0; i < tables.size(); ++i) nodes[i]->ForgetNewTable(*tables[i]);
    return status;
  }
  std::vector<Table*> added;
  for (size_t i = 0; i < nodes.size(); ++i) added.push_back(nodes[i]->AddTable(std::move(tables[i])));
  for (Table* const table : added) table->is_everywhere_.store(true, std::memory_order_release);
  PublishOn(nodes);
  return added;
}

Status Database::CreateOn(Nodes nodes, const TableOptions& options) {
  GANNET_RETURN_IF_ERROR(CheckNewTable(options, nodes.front()->data_nodes()));
  const StatusOr<TableOptions> complete = Complete(options);
  if (!complete.ok()) return complete.status();
  NodeLocks locks(nodes);
  GANNET_RETURN_IF_ERROR(locks.Take());
  std::vector<Table*> had;
  for (Database* const node : nodes) {
    Table* const table = node->state_->tables.Find(options.name);
    if (table == nullptr) continue;
    GANNET_RETURN_IF_ERROR(CheckLife(*table));
    if (table->created_) {
      return absl::AlreadyExistsError(absl::StrCat("there is a table '", options.name, "' already"));
    }
    had.push_back(table);
  }
  if (had.empty()) return MakeTableOn(nodes, *complete).status();
  GANNET_CHECK(had.size() == nodes.size(), "only some nodes have table '%s'", options.name);
  for (size_t i = 0; i < nodes.size(); ++i) GANNET_RETURN_IF_ERROR(nodes[i]->TakeOver(had[i], options, *complete));
  return absl::OkStatus();
}

Status Database::RenameOn(Nodes nodes, std::string_view from, const std::string& to) {
  GANNET_RETURN_IF_ERROR(CheckTableName(to));
  NodeLocks locks(nodes);
  GANNET_RETURN_IF_ERROR(locks.Take());
  std::vector<Table*> tables;
  for (Database* const node : nodes) {
    const StatusOr<Table*> found = node->ChangeableTable(from, "RenameTable", kInsteadOfRename, nodes.size());
    if (!found.ok()) return found.status();
    tables.push_back(*found);
    if (node->state_->tables.Find(to) != nullptr) {
      return absl::AlreadyExistsError(absl::StrCat("there is a table '", to, "' already"));
    }
  }
  const TableId id = tables.front()->id();
  GANNET_RETURN_IF_ERROR(NoteOn(nodes, "a table is renamed", [&](Catalog* catalog) {
    std::ranges::find(catalog->tables, id, &log::TableDescription::id)->name = to;
  }));
  for (Table* const table : tables) table->SetName(to);
  PublishOn(nodes);
  return absl::OkStatus();
}

void Database::PublishOn(Nodes nodes) {
  for (Database* const node : nodes) node->state_->table_digests->PublishAgain(node->state_->tables);
}

Status Database::RenameTable(std::string_view from, const std::string& to) {
  Database* const self = this;
  return RenameOn(Nodes(&self, 1), from, to);
}

Status CreateTableOnAllNodes(std::span<Database* const> databases, const TableOptions& options) {
  const StatusOr<std::vector<Database*>> nodes = Database::InOrder(databases);
  return nodes.ok() ? Database::CreateOn(*nodes, options) : nodes.status();
}

Status RenameTableOnAllNodes(std::span<Database* const> databases, std::string_view from, const std::string& to) {
  const StatusOr<std::vector<Database*>> nodes = Database::InOrder(databases);
  return nodes.ok() ? Database::RenameOn(*nodes, from, to) : nodes.status();
}

}  // namespace gannet::txn
