#include "txn/schema/kept_index.h"

#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "log/manifest/manifest.h"
#include "txn/schema/catalog_notes.h"

namespace gannet::txn {

// The commit looks at the set of tables first (TransactionImpl::Commit).
void SetKept(DatabaseState& node, Table* table, const SecondaryIndex* index, bool kept) {
  SecondaryIndexes indexes = table->secondary_indexes() == nullptr ? SecondaryIndexes() : *table->secondary_indexes();
  std::erase(indexes, index);
  if (kept) indexes.push_back(index);
  node.tables.NoteSecondaryIndex();
  table->SetSecondaryIndexes(std::move(indexes));
}

Status SetKeptOnAll(Nodes nodes, Tables entries, bool kept) {
  NodeLocks locks(nodes);
  GANNET_RETURN_IF_ERROR(locks.Take());
  for (Table* const table : entries) table->secondary()->SetBeingPublished(nodes.size() > 1);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const SecondaryIndex* const index = entries[i]->secondary();
    SetKept(*nodes[i], nodes[i]->tables.ById(index->table().id()), index, kept);
  }
  for (Table* const table : entries) table->secondary()->SetBeingPublished(false);
  return absl::OkStatus();
}

Status NoteIndex(Nodes nodes, Tables entries, bool complete, absl::string_view why) {
  NodeLocks locks(nodes);
  GANNET_RETURN_IF_ERROR(locks.Take());
  const std::string what = absl::StrCat(entries.front()->secondary()->Describe(), " ", why);
  GANNET_RETURN_IF_ERROR(NoteTableOn(nodes, what, entries.front()->id(),
                                     [&](log::TableDescription* table) { table->secondary->complete = complete; }));
  for (Table* const table : entries) table->secondary()->SetComplete(complete);
  PublishOn(nodes);
  return absl::OkStatus();
}

// This is not done under the locks of all nodes: one may be dead or closed.
void AllowBuild(Nodes nodes, Tables entries) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    const std::lock_guard lock(nodes[i]->create_mutex);
    entries[i]->SetCreated(false);
    entries[i]->secondary()->SetBeingDropped(false);
  }
}

}  // namespace gannet::txn
