#include "txn/schema/catalog_notes.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "log/manifest/manifest.h"
#include "txn/durable/durability.h"

namespace gannet::txn {

Catalog DescribeCatalog(const DatabaseState& node) {
  Catalog catalog{.tables = {}, .next_table = node.next_table, .generation = node.catalog_generation};
  for (const Table* table : node.tables) catalog.tables.push_back(DescribeTable(*table));
  return catalog;
}

bool TakeBackOn(Nodes nodes) {
  bool taken_back = false;
  for (DatabaseState* const node : nodes) {
    ++node->catalog_generation;
    taken_back |= node->durability->NoteCatalogNowOrLater(DescribeCatalog(*node)).ok();
  }
  return taken_back;
}

Status NoteOn(Nodes nodes, absl::string_view what, absl::FunctionRef<void(Catalog*)> edit, bool* may_be_noted) {
  const bool several = nodes.size() > 1;
  if (several) {
    uint64_t newest = 0;
    for (const DatabaseState* node : nodes) newest = std::max(newest, node->catalog_generation);
    for (DatabaseState* const node : nodes) node->catalog_generation = newest + 1;
  }
  for (DatabaseState* const node : nodes) {
    Catalog catalog = DescribeCatalog(*node);
    edit(&catalog);
    const Status noted = OfNode(nodes, *node, node->durability->NoteCatalog(catalog));
    if (noted.ok()) continue;
    const bool unsure = !several || !TakeBackOn(nodes);
    if (may_be_noted != nullptr) *may_be_noted = unsure;
    if (unsure) return NotNoted(what, noted);
    return Status(noted.code(), absl::StrCat("the manifest could not be written when ", what, ": ", noted.message(),
                                             ". It was done on no node"));
  }
  return absl::OkStatus();
}

Status NoteTableOn(Nodes nodes, absl::string_view what, TableId table,
                   absl::FunctionRef<void(log::TableDescription*)> edit) {
  return NoteOn(nodes, what, [&](Catalog* catalog) {
    const auto found = std::ranges::find(catalog->tables, table, &log::TableDescription::id);
    GANNET_CHECK(found != catalog->tables.end(), "table number %d, which changes, is not in the catalog", table);
    edit(&*found);
  });
}

void PublishOn(Nodes nodes) {
  for (DatabaseState* const node : nodes) node->table_digests->PublishAgain(node->tables);
}

}  // namespace gannet::txn
