// Dropping a table, on one node or on all nodes of a fabric together. The order of the steps:
//
//   1. State::kBeingDropped, on all nodes: accesses that begin now are refused.
//   2. Wait for a grace period, which is one of all nodes. A transaction is inside the epoch from its begin to its end,
//      so those that could have found the table usable have ended, on every node, and so have loads
//      (BulkLoader::Finish). A step that comes too late is refused: it loads Table::state inside the epoch, as a reader
//      loads a link to a block that may be retired (rdma/epoch.h).
//   3. Wait for the pending operations of these transactions (session/pending_operations.h): until then a node still
//      writes into records of the table, or has an owner remove some. From here on no node does. If step 2 or 3 takes
//      too long, the table is usable again, and nothing has happened.
//   4. The manifests: here the table is dropped durably. The number of a table is never used again, so to recovery the
//      log's changes of it are changes of no table, which it leaves out. With several nodes the change may be taken
//      back (catalog_notes.h): so a manifest that lacks the table still has the files that checkpoints have of it.
//   5. State::kDropped, for good: each later manifest leaves out the table and its rows (LeaveOutDropped). With one
//      node this comes before step 4, so that no manifest has the table and a checkpoint without its rows. With several
//      nodes all manifests lack the table by then, or Durability owes them such a catalog.
//   6. Wait for a checkpoint's walk over the table, which ends early (UnsavedLoads::Hold).
//   7. On each node, wait for the calls that found the table or its index before it left their sets
//      (IndexService::AwaitGuards): a call of step 2's transactions may be served late. A handler looks for the table
//      after it has its guard. Then the index has no user.
//   8. The memory of the rows and of the index goes back to the slab, and from there to the system. Addresses of it
//      remain in caches of other nodes' sessions: they are used only for accesses to the table, which are refused. The
//      sessions drop those caches when they open an index next (SessionState::ForgetDroppedTables).
//
// Before a secondary index is dropped, nobody keeps it any more (EndIndexOn).
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "index/record_header.h"
#include "index/service.h"
#include "txn/durable/durability.h"
#include "txn/node/record_walk.h"
#include "txn/record/record.h"
#include "txn/schema/catalog_notes.h"
#include "txn/schema/kept_index.h"
#include "txn/schema/new_table.h"
#include "txn/schema/quiesce.h"
#include "txn/schema/schema.h"
#include "txn/store/key_status.h"

namespace gannet::txn {
namespace {

constexpr absl::string_view kInsteadOfDrop =
    "use DropTableOnAllNodes if all are in this process, or keep the table, or make it empty";

StatusOr<std::vector<Table*>> TablesToDrop(Nodes nodes, std::string_view name) {
  StatusOr<std::vector<Table*>> tables = ChangeableTables(nodes, name, "DropTable", kInsteadOfDrop);
  if (!tables.ok()) return tables;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Table& table = *(*tables)[i];
    if (const std::string index = NameOfAnIndexOf(*nodes[i], table); !index.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat(NameOf(table), " has the secondary index '", index, "': drop that first"));
    }
    const SecondaryIndex* const dropped = table.secondary();
    if (dropped != nullptr && (dropped->is_being_dropped() || (table.is_created() && !dropped->is_complete()))) {
      return absl::FailedPreconditionError(absl::StrCat(table.secondary()->Describe(), " is being built, or dropped"));
    }
  }
  return tables;
}

// The catalog calls the index incomplete before anybody stops keeping it, so no crash leaves a wrong one that is called
// complete. And transactions that read by it have ended by then, so none misses an entry. After an error it is one that
// CreateIndex can build again, and that can be dropped.
Status EndIndex(Nodes nodes, Tables entries) {
  const absl::Duration wait = nodes.front()->options.durable_within;
  const auto await = [&] {
    const std::string what = absl::StrCat("index '", entries.front()->name(), "' is not complete now, but not dropped");
    return AwaitOlderTransactions(*nodes.front(), wait, what);
  };
  Status ended = NoteIndex(nodes, entries, false, "is dropped");
  if (ended.ok()) {
    ended = await();
    const Status stopped = SetKeptOnAll(nodes, entries, false);
    if (ended.ok()) ended = stopped;
    // Transactions that began before may still change entries.
    if (ended.ok()) ended = await();
  }
  if (ended.ok()) {
    NodeLocks locks(nodes);
    ended = locks.Take();
    for (Table* const table : entries) {
      if (ended.ok()) table->SetState(Table::State::kBeingDropped);
    }
  }
  if (!ended.ok()) AllowBuild(nodes, entries);
  return ended;
}

bool NoteDrop(Nodes nodes, Tables tables, Status* error) {
  const TableId id = tables.front()->id();
  const auto leave_out = [id](Catalog* catalog) {
    std::erase_if(catalog->tables, [id](const auto& table) { return table.id == id; });
  };
  if (nodes.size() > 1) {
    bool may_be_noted = false;
    *error = NoteOn(nodes, "a table is dropped", leave_out, &may_be_noted);
    if (!error->ok() && !may_be_noted) return false;
    // Rows that came now might be lost with the table, so it does not stay. One manifest is enough.
    for (size_t i = 0; may_be_noted && i < nodes.size(); ++i) {
      Catalog catalog = DescribeCatalog(*nodes[i]);
      catalog.generation = ++nodes[i]->catalog_generation;
      leave_out(&catalog);
      if (nodes[i]->durability->NoteCatalogNowOrLater(catalog).ok()) *error = absl::OkStatus();
    }
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    tables[i]->SetState(Table::State::kDropped);
    nodes[i]->tables.Remove(id);
  }
  if (nodes.size() == 1) *error = nodes[0]->durability->NoteCatalog(DescribeCatalog(*nodes[0]));
  for (DatabaseState* const node : nodes) {
    UnsavedLoads& loads = node->durability->loads();
    loads.Hold(id);
    loads.Forget(id);
    loads.Release(id);
  }
  PublishOn(nodes);
  return true;
}

void FreeRows(DatabaseState& node, const Table& table, index::LocalIndex& index) {
  RecordWalk walk(*node.local, table, index, RecordWalk::Strays::kAreLeftOut);
  while (walk.has_more()) {
    index::IndexService::Guard guard(node.indexes.get());
    const auto records = walk.Next();
    for (const rdma::GlobalAddress address : *records) {
      node.lent_records->Drop(address);
      std::byte* const record = node.local->Direct(address);
      const index::RecordMeta meta = index::LoadMeta(record);
      const size_t bytes = index::RecordBytes(meta.key_bytes, meta.payload_bytes);
      // A lock that is still owed to the record (pending_operations.h) finds another version.
      MarkAbsent(record, rdma::LinesFor(index::PayloadDataOffset(meta.key_bytes) + meta.payload_bytes),
                 LoadWord(record));
      guard.context().slab->Free(record, bytes);
    }
  }
}

void FreeDropped(DatabaseState& node, Table* table) {
  node.indexes->Remove(table->id());
  node.indexes->AwaitGuards();
  node.client_caches.Forget(table->id());
  const std::unique_ptr<index::LocalIndex> index = table->TakeIndex();
  FreeRows(node, *table, *index);
  index->ReleaseMemory();
}

}  // namespace

Status Schema::DropTable(std::string_view name) {
  std::vector<Table*> tables;
  GANNET_RETURN_IF_ERROR(Hold(nodes_, [&]() -> StatusOr<bool> {
    StatusOr<std::vector<Table*>> found = TablesToDrop(nodes_, name);
    if (!found.ok()) return found.status();
    tables = *std::move(found);
    for (Table* const table : tables) {
      if (table->secondary() == nullptr) {
        table->SetState(Table::State::kBeingDropped);
      } else {
        table->SetCreated(true);  // nobody builds it meanwhile
        table->secondary()->SetBeingDropped(true);
      }
    }
    return true;
  }));
  const bool is_index = tables.front()->secondary() != nullptr;
  if (is_index) GANNET_RETURN_IF_ERROR(EndIndex(nodes_, tables));
  Status noted;
  bool dropped = false;
  const Status ended = ApplyAlone(
      nodes_, absl::StrCat(NameOf(*tables.front()), " was not dropped"), Awaits::kTheirPendingToo,
      [&] {
        dropped = NoteDrop(nodes_, tables, &noted);
        return dropped ? absl::OkStatus() : noted;
      },
      [&](const Status&) {
        for (Table* const table : tables) {
          if (!dropped) table->SetState(Table::State::kUsed);
        }
      });
  if (!dropped) {
    if (is_index) AllowBuild(nodes_, tables);
    return ended;
  }
  for (size_t i = 0; i < nodes_.size(); ++i) {
    FreeDropped(*nodes_[i], tables[i]);
    nodes_[i]->slab->Trim(/*alone=*/!nodes_[i]->local->calls());
  }
  if (noted.ok()) return noted;
  return Status(noted.code(),
                absl::StrCat("table '", tables.front()->name(), "' is dropped here, but the manifest could not be ",
                             "written: ", noted.message(), ". The directory may have the table until ",
                             nodes_.size() == 1 ? "its" : "a node's", " next checkpoint"));
}

}  // namespace gannet::txn
