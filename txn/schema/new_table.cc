#include "txn/schema/new_table.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "index/own_locations.h"
#include "index/registry.h"
#include "index/service.h"
#include "log/manifest/manifest.h"
#include "txn/durable/durability.h"
#include "txn/schema/catalog_notes.h"
#include "txn/schema/kept_index.h"
#include "txn/schema/table_options.h"
#include "txn/store/key_status.h"

namespace gannet::txn {
namespace {

// A table with the next number, and its index, which nobody knows yet.
StatusOr<std::unique_ptr<Table>> PrepareTable(DatabaseState& node, const TableOptions& complete,
                                              absl::FunctionRef<void(Table*)> prepare) {
  if (node.next_table > std::numeric_limits<TableId>::max()) {
    return absl::ResourceExhaustedError(absl::StrCat("table '", complete.name, "': all ",
                                                     std::numeric_limits<TableId>::max() + 1,
                                                     " numbers of tables have been used"));
  }
  auto table =
      std::make_unique<Table>(static_cast<TableId>(node.next_table), complete, node.local->data_nodes, node.node->id());
  table->SetCreated(true);
  prepare(table.get());
  GANNET_RETURN_IF_ERROR(MakeIndex(node, table.get()));
  return table;
}

// Gives back the memory of a table that PrepareTable made and nobody knows.
void ForgetNewTable(DatabaseState& node, Table& table) {
  node.indexes->Remove(table.id());
  table.TakeIndex()->ReleaseMemory();
}

Table* AddTable(DatabaseState& node, std::unique_ptr<Table> table) {
  const TableId id = table->id();
  // The log may have changes of a table that had the number before.
  GANNET_CHECK(id >= node.tables.id_bound(), "table '%s' has the number %d; numbers up to %d have been given",
               table->name(), id, node.tables.id_bound());
  node.next_table = std::max(node.next_table, id + uint32_t{1});
  node.record_bytes.AddTable(id);
  return node.tables.Add(std::move(table));
}

Status AdoptSecondary(DatabaseState& node, const Catalog& catalog) {
  for (const log::TableDescription& description : catalog.tables) {
    if (!description.secondary.has_value()) continue;
    Table* const entries = node.tables.ById(description.id);
    Table* const table = node.tables.ById(description.secondary->table);
    const auto wrong = [&](const absl::StatusCode code, auto&&... what) {
      return Status(code, absl::StrCat("secondary index '", description.name, "' of the manifest: ", what...));
    };
    if (table == nullptr || table->secondary() != nullptr || table == entries) {
      return wrong(absl::StatusCode::kDataLoss, "it is of table number ", description.secondary->table,
                   ", which is no table of rows");
    }
    StatusOr<std::vector<IndexField>> fields = IndexFieldsOf(*description.secondary);
    if (!fields.ok()) return wrong(fields.status().code(), fields.status().message());
    entries->SetSecondary(std::make_unique<SecondaryIndex>(table, entries, *description.secondary, *std::move(fields)));
    if (description.secondary->complete) SetKept(node, table, entries->secondary(), true);
  }
  return absl::OkStatus();
}

}  // namespace

// One node cannot change the catalogs of the others.
Status CheckChangeable(Nodes nodes, absl::string_view instead) {
  const DatabaseState& node = *nodes.front();
  GANNET_RETURN_IF_ERROR(node.sessions.CheckOpen());
  if (static_cast<size_t>(node.fabric->num_nodes()) == nodes.size()) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "a cluster of several nodes does not change its tables after Database::Start: ", instead, ", on every node"));
}

StatusOr<std::vector<Table*>> ChangeableTables(Nodes nodes, std::string_view name, absl::string_view what,
                                               absl::string_view instead) {
  std::vector<Table*> tables;
  for (const DatabaseState* const node : nodes) {
    if (!node->started) return absl::FailedPreconditionError(absl::StrCat("call Database::Start before ", what));
    GANNET_RETURN_IF_ERROR(CheckChangeable(nodes, instead));
    tables.push_back(node->tables.Find(name));
    if (tables.back() == nullptr) {
      return absl::NotFoundError(absl::StrCat("there is no table '", absl::CHexEscape(std::string(name)), "'"));
    }
    GANNET_RETURN_IF_ERROR(CheckState(*tables.back()));
  }
  return tables;
}

// All manifests have the table before a node's sessions can find it, so no log has a row of it before. And a session of
// one node finds it when all nodes serve it.
StatusOr<std::vector<Table*>> MakeTables(Nodes nodes, const TableOptions& complete,
                                         absl::FunctionRef<void(size_t node, Table*)> prepare) {
  uint32_t id = 0;
  for (const DatabaseState* node : nodes) id = std::max(id, node->next_table);
  for (DatabaseState* const node : nodes) node->next_table = id;
  std::vector<std::unique_ptr<Table>> tables;
  Status status;
  for (size_t i = 0; i < nodes.size(); ++i) {
    StatusOr<std::unique_ptr<Table>> table = PrepareTable(*nodes[i], complete, [&](Table* made) { prepare(i, made); });
    if (!table.ok()) {
      status = OfNode(nodes, *nodes[i], table.status());
      break;
    }
    tables.push_back(*std::move(table));
    tables.back()->SetEverywhere(false);
  }
  const bool started = nodes.front()->started;
  // The number is used up even after an error: a manifest may have the table.
  if (started && !tables.empty()) {
    for (DatabaseState* const node : nodes) ++node->next_table;
  }
  if (started && status.ok()) {
    status = NoteOn(nodes, "a table is created",
                    [&](Catalog* catalog) { catalog->tables.push_back(DescribeTable(*tables.front())); });
  }
  if (!status.ok()) {
    for (size_t i = 0; i < tables.size(); ++i) ForgetNewTable(*nodes[i], *tables[i]);
    return status;
  }
  std::vector<Table*> added;
  for (size_t i = 0; i < nodes.size(); ++i) added.push_back(AddTable(*nodes[i], std::move(tables[i])));
  for (Table* const table : added) table->SetEverywhere(true);
  if (started) PublishOn(nodes);
  return added;
}

Status TakeOver(DatabaseState& node, Table* table, const TableOptions& asked, TableOptions complete) {
  const int data_nodes = node.local->data_nodes;
  const Table as_asked(table->id(), complete, data_nodes, node.node->id());
  GANNET_RETURN_IF_ERROR(CheckSameTable(DescribeTable(*table), DescribeTable(as_asked), data_nodes));
  const TableOptions& kept = table->options();
  if (!asked.index_rights.has_value()) complete.index_rights = kept.index_rights;
  if (asked.application.empty()) complete.application = kept.application;
  if (asked.key_form == KeyForm::kPlain) complete.key_form = table->key_form();
  const bool says_form = complete.key_form != table->key_form();
  const bool may_say_form = !says_form || node.fabric->num_nodes() == 1;
  if (!table->has_index()) {
    table->SetOptions(std::move(complete));
    GANNET_RETURN_IF_ERROR(MakeIndex(node, table));
  } else if (!table->knows_owners() || complete.index_rights != kept.index_rights ||
             complete.application != kept.application || !may_say_form) {
    return absl::FailedPreconditionError(absl::StrCat("table '", table->name(),
                                                      "' has been opened with other TableOptions::",
                                                      !table->knows_owners()                       ? "placement"
                                                      : complete.index_rights != kept.index_rights ? "index_rights"
                                                      : complete.application != kept.application   ? "application"
                                                                                                   : "key_form",
                                                      "; create it before Database::Start"));
  } else if (says_form) {
    // A program can use its table although the disk is full.
    table->SetKeyForm(complete.key_form);
    node.durability->NoteCatalogNowOrLater(DescribeCatalog(node)).IgnoreError();
  }
  table->SetCreated(true);
  return absl::OkStatus();
}

Status MakeIndex(DatabaseState& node, Table* table) {
  const TableOptions& options = table->options();
  const index::IndexKindEntry& kind = index::EntryOf(options.index);
  StatusOr<index::OwnOptions> own = index::ReadOwnOptions(kind, options.index_options);
  if (!own.ok()) return own.status();
  StatusOr<std::unique_ptr<index::LocalIndex>> index = kind.create(node.indexes.get(), table->id(),
                                                                   {.key_kind = options.key_kind,
                                                                    .max_key_bytes = options.max_key_bytes,
                                                                    .expected_keys = options.expected_rows,
                                                                    .rights = *options.index_rights,
                                                                    .own = std::move(own->options)});
  if (!index.ok()) {
    return Status(index.status().code(), absl::StrCat("table '", table->name(), "': ", index.status().message()));
  }
  std::unique_ptr<index::OwnLocations> locations;
  if (!table->index_traits().guesses_records && !table->index_traits().client_writes) {
    locations = std::make_unique<index::OwnLocations>(table->id(), options.key_kind, node.node->id(),
                                                      node.node->memory().data(), node.location_budget);
  }
  table->SetIndex(*std::move(index), std::move(locations));
  return absl::OkStatus();
}

std::string NameOfAnIndexOf(const DatabaseState& node, const Table& table) {
  for (const Table* other : node.tables) {
    if (other->secondary() != nullptr && &other->secondary()->table() == &table) return other->name();
  }
  return "";
}

Status AdoptTables(DatabaseState& node, const Catalog& catalog) {
  const int data_nodes = node.local->data_nodes;
  for (const log::TableDescription& description : catalog.tables) {
    StatusOr<TableOptions> options = OptionsOf(description);
    if (!options.ok()) return options.status();
    GANNET_RETURN_IF_ERROR(CheckTable(*options, data_nodes));
    options = CompleteOptions(*std::move(options));
    if (!options.ok()) return options.status();
    auto table = std::make_unique<Table>(description.id, *std::move(options), data_nodes, node.node->id());
    table->NoteInDirectory(description.placement, description.least_payload_bytes);
    AddTable(node, std::move(table));
  }
  node.next_table = std::max(node.next_table, catalog.next_table);
  node.first_new_table = node.next_table;
  node.catalog_generation = catalog.generation;
  return AdoptSecondary(node, catalog);
}

Status MakeIndexes(DatabaseState& node) {
  for (Table* const table : node.tables) {
    if (!table->has_index()) GANNET_RETURN_IF_ERROR(MakeIndex(node, table));
  }
  return absl::OkStatus();
}

}  // namespace gannet::txn
