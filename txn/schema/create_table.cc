// Creating and renaming a table.
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "log/manifest/manifest.h"
#include "txn/schema/catalog_notes.h"
#include "txn/schema/new_table.h"
#include "txn/schema/schema.h"
#include "txn/schema/table_options.h"
#include "txn/store/key_status.h"

namespace gannet::txn {
namespace {

constexpr absl::string_view kInsteadOfCreate =
    "use CreateTableOnAllNodes if all are in this process, or create every new table before it";
constexpr absl::string_view kInsteadOfRename =
    "use RenameTableOnAllNodes if all are in this process, or give every table its name before it";

Status NameIsTaken(std::string_view name) {
  return absl::AlreadyExistsError(
      absl::StrCat("there is a table '", absl::string_view(name.data(), name.size()), "' already"));
}

}  // namespace

StatusOr<const Table*> Schema::CreateTable(const TableOptions& options) {
  const DatabaseState& first = *nodes_.front();
  GANNET_RETURN_IF_ERROR(first.sessions.CheckHome());
  GANNET_RETURN_IF_ERROR(CheckNewTable(options, first.local->data_nodes));
  const StatusOr<TableOptions> complete = CompleteOptions(options);
  if (!complete.ok()) return complete.status();
  NodeLocks locks(nodes_);
  GANNET_RETURN_IF_ERROR(locks.Take());
  std::vector<Table*> had;
  for (DatabaseState* const node : nodes_) {
    Table* const table = node->tables.Find(options.name);
    if (table == nullptr) continue;
    GANNET_RETURN_IF_ERROR(CheckState(*table));
    if (table->is_created()) return NameIsTaken(options.name);
    had.push_back(table);
  }
  if (had.empty()) {
    if (first.started) GANNET_RETURN_IF_ERROR(CheckChangeable(nodes_, kInsteadOfCreate));
    const StatusOr<std::vector<Table*>> made = MakeTables(nodes_, *complete);
    if (!made.ok()) return made.status();
    return made->front();
  }
  GANNET_CHECK(had.size() == nodes_.size(), "only some nodes have table '%s'", options.name);
  for (size_t i = 0; i < had.size(); ++i) GANNET_RETURN_IF_ERROR(TakeOver(*nodes_[i], had[i], options, *complete));
  return had.front();
}

Status Schema::RenameTable(std::string_view from, const std::string& to) {
  GANNET_RETURN_IF_ERROR(CheckTableName(to));
  NodeLocks locks(nodes_);
  GANNET_RETURN_IF_ERROR(locks.Take());
  const StatusOr<std::vector<Table*>> tables = ChangeableTables(nodes_, from, "RenameTable", kInsteadOfRename);
  if (!tables.ok()) return tables.status();
  for (const DatabaseState* const node : nodes_) {
    if (node->tables.Find(to) != nullptr) return NameIsTaken(to);
  }
  GANNET_RETURN_IF_ERROR(NoteTableOn(nodes_, "a table is renamed", tables->front()->id(),
                                     [&](log::TableDescription* table) { table->name = to; }));
  for (Table* const table : *tables) table->SetName(to);
  PublishOn(nodes_);
  return absl::OkStatus();
}

}  // namespace gannet::txn
