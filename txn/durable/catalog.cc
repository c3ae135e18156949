#include "txn/durable/catalog.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "index/registry.h"
#include "log/manifest/manifest.h"
#include "txn/node/local_node.h"
#include "txn/store/key_form.h"

namespace gannet::txn {
namespace {

std::string Keys(const log::TableDescription& table) {
  return table.integer_keys ? "integer keys" : absl::StrCat("keys of at most ", table.max_key_bytes, " bytes");
}

std::string Form(const log::TableDescription& table) {
  return absl::StrCat("one with keys of the form ", table.key_form);
}

std::string Payload(const log::TableDescription& table) {
  return absl::StrCat("payloads of ", table.variable_length ? "at most " : "", table.payload_bytes, " bytes");
}

std::string Placed(const log::TableDescription& table) {
  if (table.replicated) return "replicated";
  if (!table.range_starts.empty()) {
    return absl::StrCat("placed by range, with starts ", absl::StrJoin(table.range_starts, ", "));
  }
  if (table.placement == kPlacedOnFirstNode) return "placed on the first node";
  if (table.placement == kPlacedByHash) return "placed by hash";
  return "placed by a function of the program";
}

std::string Role(const log::TableDescription& table) {
  if (!table.secondary.has_value()) return "a table of rows";
  const log::IndexDescription& index = *table.secondary;
  const StatusOr<std::vector<IndexField>> fields = IndexFieldsOf(index);
  return absl::StrCat(index.unique ? "a unique index" : "an index", " of table number ", index.table, " by ",
                      fields.ok() ? ToText(*fields) : "fields that are unknown here");
}

// Whether it is complete does not belong to what it is.
bool SameSecondary(const log::TableDescription& had, const log::TableDescription& has) {
  if (had.secondary.has_value() != has.secondary.has_value()) return false;
  if (!had.secondary.has_value()) return true;
  log::IndexDescription as_complete = *had.secondary;
  as_complete.complete = has.secondary->complete;
  return as_complete == *has.secondary;
}

// Manifests before the placement was kept do not tell functions from each other.
bool SamePlacement(const log::TableDescription& had, const log::TableDescription& has, int data_nodes) {
  if (had.replicated != has.replicated || had.range_starts != has.range_starts) return false;
  return data_nodes == 1 || had.placement.empty() || had.placement == has.placement;
}

StatusOr<Placement> PlacementOf(const log::TableDescription& description) {
  if (description.replicated) return Placement::Replicated();
  if (!description.range_starts.empty()) return Placement::ByRangeTexts(description.range_starts);
  if (description.placement == kPlacedOnFirstNode) return Placement::OnFirstNode();
  if (description.placement == kPlacedByHash) return Placement::ByHash();
  if (description.placement.empty() || description.placement == kPlacedByFunction) return Placement::Unknown();
  return absl::InvalidArgumentError(absl::StrCat("this program knows no placement '", description.placement, "'"));
}

}  // namespace

StatusOr<Catalog> CatalogOf(const std::vector<NodeData>& nodes) {
  Catalog catalog;
  std::map<uint16_t, const log::TableDescription*> by_id;
  std::map<std::string_view, uint16_t> by_name;
  for (const NodeData& node : nodes) {
    catalog.next_table = std::max(catalog.next_table, node.manifest.next_table);
    catalog.generation = std::max(catalog.generation, node.manifest.catalog_generation);
  }
  for (const NodeData& node : nodes) {
    if (node.manifest.catalog_generation < catalog.generation) continue;
    std::set<uint16_t> own;
    for (const log::TableDescription& table : node.manifest.tables) {
      const auto [known, is_new] = by_id.emplace(table.id, &table);
      const auto [named, is_new_name] = by_name.emplace(table.name, table.id);
      if (!own.insert(table.id).second || known->second->name != table.name || named->second != table.id) {
        return absl::DataLossError(absl::StrCat(
            node.path, "/MANIFEST has table '", table.name, "' as number ", table.id, ", which contradicts ",
            &node == &nodes.front() ? "another table in it"
                                    : "the other nodes' manifests: this directory was put together from several "
                                      "databases"));
      }
    }
  }
  for (const auto& [id, table] : by_id) catalog.tables.push_back(*table);
  if (!by_id.empty()) catalog.next_table = std::max(catalog.next_table, by_id.rbegin()->first + uint32_t{1});
  return catalog;
}

Status TakeNewestCatalog(std::vector<NodeData>* nodes) {
  const StatusOr<Catalog> catalog = CatalogOf(*nodes);
  if (!catalog.ok()) return catalog.status();
  for (NodeData& node : *nodes) {
    log::Manifest& manifest = node.manifest;
    if (manifest.catalog_generation != catalog->generation) {
      manifest.tables = catalog->tables;
      manifest.next_table = catalog->next_table;
      manifest.catalog_generation = catalog->generation;
    }
    // A manifest of the greatest generation may lack a dropped table and still have its files.
    if (catalog->generation > 0) LeaveOutUnknown(&manifest);
  }
  return absl::OkStatus();
}

log::TableDescription DescribeTable(const Table& table) {
  const TableOptions& options = table.options();
  return {.id = table.id(),
          .name = table.name(),
          .integer_keys = options.key_kind == index::KeyKind::kInteger,
          .max_key_bytes = static_cast<uint32_t>(options.max_key_bytes),
          .index = index::EntryOf(options.index).name,
          .index_options = options.index_options,
          .index_rights = std::string(index::NameOf(*options.index_rights)),
          .payload_bytes = static_cast<uint32_t>(table.payload_bytes()),
          .least_payload_bytes = static_cast<uint32_t>(table.least_payload_bytes()),
          .variable_length = options.variable_length,
          .replicated = options.placement.replicated,
          .placement = std::string(table.placement_name()),
          .expected_rows = options.expected_rows,
          .range_starts =
              options.placement.ranges == nullptr ? std::vector<std::string>() : options.placement.ranges->texts(),
          .application = options.application,
          .key_form = std::string(NameOf(table.key_form())),
          .secondary = table.secondary() == nullptr ? std::nullopt : std::optional(table.secondary()->Description())};
}

StatusOr<TableOptions> OptionsOf(const log::TableDescription& description) {
  const auto named = [&](const Status& wrong) {
    return Status(wrong.code(), absl::StrCat("table '", description.name, "' of the manifest: ", wrong.message()));
  };
  const StatusOr<index::IndexKind> kind = index::IndexKindOf(description.index);
  if (!kind.ok()) return named(kind.status());
  StatusOr<Placement> placement = PlacementOf(description);
  if (!placement.ok()) return named(placement.status());
  TableOptions options{.name = description.name,
                       .key_kind = description.integer_keys ? index::KeyKind::kInteger : index::KeyKind::kBytes,
                       .max_key_bytes = description.max_key_bytes,
                       .index = *kind,
                       .index_options = description.index_options,
                       .payload_bytes = description.payload_bytes,
                       .variable_length = description.variable_length,
                       .expected_rows = description.expected_rows,
                       .placement = *std::move(placement),
                       .application = description.application};
  if (!description.index_rights.empty()) {
    const StatusOr<IndexRights> rights = index::IndexRightsOf(description.index_rights);
    if (!rights.ok()) return named(rights.status());
    options.index_rights = *rights;
  }
  const StatusOr<KeyForm> form = KeyFormOf(description.key_form);
  if (!form.ok()) return named(form.status());
  options.key_form = *form;
  return options;
}

// Checkpoints of ordered tables are in key order, those of others are not, and nothing is converted when a database is
// opened.
Status CheckSameTable(const log::TableDescription& had, const log::TableDescription& has, int data_nodes) {
  const auto differs = [&](absl::string_view was, absl::string_view is) {
    return absl::InvalidArgumentError(
        absl::StrCat("table '", had.name, "' in the directory is ", was, ", and the program creates it as ", is,
                     "; create it as it is (to change it, copy its rows to a new table)"));
  };
  if (!SameSecondary(had, has)) return differs(Role(had), Role(has));
  if (has.index != had.index) {
    return differs(absl::StrCat("one with index ", had.index), absl::StrCat("one with index ", has.index));
  }
  // The options that the text leaves out have defaults; `has` names all of them.
  const StatusOr<index::OwnOptions> options =
      index::ReadOwnOptions(*index::FindIndexKind(has.index), had.index_options);
  if (!options.ok() || options->text != has.index_options) {
    return differs(absl::StrCat("one with index options '", had.index_options, "'"),
                   absl::StrCat("one with '", has.index_options, "'"));
  }
  if (has.integer_keys != had.integer_keys || has.max_key_bytes != had.max_key_bytes) {
    return differs(absl::StrCat("one with ", Keys(had)), absl::StrCat("one with ", Keys(has)));
  }
  // An empty form means that the directory, or the program, does not say it.
  if (has.key_form != had.key_form && !has.key_form.empty() && !had.key_form.empty()) {
    return differs(Form(had), Form(has));
  }
  if (has.payload_bytes != had.payload_bytes || has.variable_length != had.variable_length) {
    return differs(absl::StrCat("one with ", Payload(had)), absl::StrCat("one with ", Payload(has)));
  }
  // The rows are where the old placement put them, and would not be found.
  if (!SamePlacement(had, has, data_nodes)) return differs(Placed(had), Placed(has));
  return absl::OkStatus();
}

Status NotNoted(absl::string_view what, const Status& why) {
  return Status(why.code(),
                absl::StrCat("the manifest could not be written when ", what, ": ", why.message(),
                             ". It is not done here, but the directory may have it when it is opened again"));
}

const log::TableDescription* TableById(const log::Manifest& manifest, uint16_t id) {
  const auto found = std::ranges::find(manifest.tables, id, &log::TableDescription::id);
  return found == manifest.tables.end() ? nullptr : &*found;
}

void LeaveOutUnknown(log::Manifest* manifest) {
  for (log::CheckpointDescription& checkpoint : manifest->checkpoints) {
    std::erase_if(checkpoint.files,
                  [&](const log::CheckpointFile& file) { return TableById(*manifest, file.table) == nullptr; });
  }
}

void LeaveOutDropped(const LocalNode& local, log::Manifest* manifest) {
  const auto is_gone = [&local](uint16_t id) {
    const Table* const table = local.TableById(id);
    return local.tables.WasRemoved(id) || (table != nullptr && table->state() == Table::State::kDropped);
  };
  std::erase_if(manifest->tables, [&](const log::TableDescription& table) { return is_gone(table.id); });
  for (log::CheckpointDescription& checkpoint : manifest->checkpoints) {
    std::erase_if(checkpoint.files, [&](const log::CheckpointFile& file) { return is_gone(file.table); });
  }
}

}  // namespace gannet::txn
