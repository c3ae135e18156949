// Dropping a table, on one node or on all nodes of a fabric together. The order of the steps:
//
//   1. Life::kBeingDropped, on all nodes: accesses that begin now are refused.
//   2. Wait for a grace period, which is one of all nodes. A transaction is inside the epoch from its begin to its end,
//      so those that could have found the table usable have ended, on every node, and so have loads
//      (BulkLoader::Finish). A step that comes too late is refused: it loads Table::life inside the epoch, as a reader
//      loads a link to a block that may be retired (rdma/epoch.h).
//   3. Wait for the debts of these transactions (session/debts.h): until then a node still writes into records of the
//      table, or has an owner remove some. From here on no node does. If step 2 or 3 takes too long, the table is
//      usable again, and nothing has happened.
//   4. The manifests: here the table is dropped durably. The number of a table is never used again, so to recovery the
//      log's changes of it are changes of no table, which it leaves out. With several nodes the change may be taken
//      back (catalog_change.cc): so a manifest that lacks the table still has the files that checkpoints have of it.
//   5. Life::kDropped, for ever: each later manifest leaves out the table and its rows (LeaveOutDropped). With one node
//      this comes before step 4, so that no manifest has the table and a checkpoint without its rows. With several
//      nodes all manifests lack the table by then, or Durability owes them such a catalog.
//   6. Wait for a checkpoint's walk over the table, which ends early (UnsavedLoads::Hold).
//   7. On each node, wait for the calls that found the table or its index before it left their sets
//      (IndexService::AwaitLeases): a call of step 2's transactions may be served late. A handler looks for the table
//      after it has its lease. Then the index has no user.
//   8. The memory of the rows and of the index goes back to the slab, and from there to the system. Addresses of it
//      remain in caches of other nodes' sessions: they are used only for accesses to the table, which are refused. The
//      sessions drop those caches when they open an index next (SessionState::ForgetDroppedTables).
//
// Before a secondary index is dropped, nobody keeps it any more (EndIndexOn).
#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/stop.h"
#include "base/thread.h"
#include "index/record_header.h"
#include "index/service.h"
#include "log/checkpoint.h"
#include "txn/all_nodes.h"
#include "txn/database.h"
#include "txn/database_state.h"
#include "txn/durable/catalog.h"
#include "txn/durable/durability.h"
#include "txn/node/record_walk.h"
#include "txn/node_locks.h"
#include "txn/record/record.h"
#include "txn/store/key_status.h"

namespace gannet::txn {
namespace {

constexpr absl::string_view kInsteadOfDrop =
    "use DropTableOnAllNodes if all are in this process, or keep the table, or make it empty";
constexpr uint64_t kDropPauseNanos = 200'000;

}  // namespace

Status Database::AwaitOlderTransactions(absl::Duration wait, absl::string_view what) {
  StatusOr<std::unique_ptr<rdma::EpochManager::Participant>> participant =
      rdma::EpochManager::Participant::Join(state_->epochs.get());
  if (!participant.ok()) return participant.status();
  // Shared, because it is set even if nobody waits any more.
  const auto passed = std::make_shared<std::atomic<bool>>(false);
  (*participant)->RetireWith([passed] { passed->store(true, std::memory_order_release); });
  const uint64_t start = NowNanos();
  const auto most = static_cast<uint64_t>(std::max<int64_t>(0, absl::ToInt64Nanoseconds(wait)));
  for (;;) {
    (*participant)->Collect();
    if (passed->load(std::memory_order_acquire)) return absl::OkStatus();
    GANNET_RETURN_IF_ERROR(CheckStop(state_->options.stop, "the end of open transactions was awaited"));
    if (NowNanos() - start > most) {
      return absl::DeadlineExceededError(absl::StrCat(what, ": a transaction that began before is still open after ",
                                                      absl::FormatDuration(wait),
                                                      "; end it, and do not change tables inside of one"));
    }
    SleepForNanos(kDropPauseNanos);
  }
}

void Database::FreeRows(const Table& table, index::LocalIndex& index) {
  RecordWalk walk(*state_->local, table, index, RecordWalk::Strays::kAreLeftOut);
  while (walk.has_more()) {
    index::IndexService::Lease lease(&*state_->indexes);
    const auto records = walk.Next();
    for (const rdma::GlobalAddress address : *records) {
      state_->lent_records->Drop(address);
      std::byte* const record = state_->local->Direct(address);
      const index::RecordMeta meta = index::LoadMeta(record);
      const size_t bytes = index::RecordBytes(meta.key_bytes, meta.payload_bytes);
      // A lock that is still owed to the record (debts.h) finds another version.
      MarkAbsent(record, rdma::LinesFor(index::PayloadDataOffset(meta.key_bytes) + meta.payload_bytes),
                 LoadWord(record));
      lease.context().slab->Free(record, bytes);
    }
  }
}

std::string Database::NameOfAnIndexOf(const Table& table) const {
  for (const Table* other : state_->tables) {
    if (other->secondary() != nullptr && &other->secondary()->table() == &table) return other->name();
  }
  return "";
}

StatusOr<Table*> Database::TableToDrop(std::string_view name, size_t nodes) const {
  const StatusOr<Table*> found = ChangeableTable(name, "DropTable", kInsteadOfDrop, nodes);
  if (!found.ok()) return found.status();
  const Table* const table = *found;
  if (const std::string index = NameOfAnIndexOf(*table); !index.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(NameOf(*table), " has the secondary index '", index, "': drop that first"));
  }
  if (table->secondary() != nullptr && table->created_ && !table->secondary()->is_complete()) {
    return absl::FailedPreconditionError(absl::StrCat(table->secondary()->Describe(), " is being built, or dropped"));
  }
  return found;
}

Status Database::StopKeepingOn(Nodes nodes, Tables entries) {
  NodeLocks locks(nodes);
  GANNET_RETURN_IF_ERROR(locks.Take());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const SecondaryIndex* const index = entries[i]->secondary();
    nodes[i]->SetKept(nodes[i]->state_->tables.ById(index->table().id()), index, false);
  }
  return absl::OkStatus();
}

// Not under the locks of all nodes: one may be dead or closed.
void Database::AllowBuildOn(Nodes nodes, Tables entries) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    const std::lock_guard lock(nodes[i]->state_->create_mutex);
    entries[i]->created_ = false;
  }
}

// The catalog calls the index incomplete before anybody stops keeping it, so no crash leaves a wrong one that is called
// complete. And transactions that read by it have ended by then, so none misses an entry. After an error it is one that
// CreateIndex can build again, and that can be dropped.
Status Database::EndIndexOn(Nodes nodes, Tables entries) {
  const absl::Duration wait = nodes.front()->state_->options.durable_within;
  const auto await = [&] {
    const std::string what = absl::StrCat("index '", entries.front()->name(), "' is not complete now, but not dropped");
    return nodes.front()->AwaitOlderTransactions(wait, what);
  };
  Status ended = NoteIndexOn(nodes, entries, false, "is dropped");
  if (ended.ok()) {
    ended = await();
    const Status stopped = StopKeepingOn(nodes, entries);
    if (ended.ok()) ended = stopped;
    // Transactions that began before may still change entries.
    if (ended.ok()) ended = await();
  }
  if (ended.ok()) {
    NodeLocks locks(nodes);
    ended = locks.Take();
    for (Table* const table : entries) {
      if (ended.ok()) table->SetLife(Table::Life::kBeingDropped);
    }
  }
  if (!ended.ok()) AllowBuildOn(nodes, entries);
  return ended;
}

Status Database::AwaitDebtsOn(Nodes nodes, absl::Duration wait, absl::string_view what) {
  const uint64_t start = NowNanos();
  const auto most = static_cast<uint64_t>(std::max<int64_t>(0, absl::ToInt64Nanoseconds(wait)));
  for (const Database* const node : nodes) {
    while (node->state_->debts->open().since <= start) {
      GANNET_RETURN_IF_ERROR(CheckStop(node->state_->options.stop, "the end of transactions was awaited"));
      if (NowNanos() - start > most) {
        return absl::DeadlineExceededError(
            absl::StrCat(what, ": node ", node->node_id(), " could not tell another ", "node for ",
                         absl::FormatDuration(wait), " how a transaction ended, and goes on trying; call again later"));
      }
      SleepForNanos(kDropPauseNanos);
    }
  }
  return absl::OkStatus();
}

bool Database::NoteDropOn(Nodes nodes, Tables tables, Status* error) {
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
      Catalog catalog = nodes[i]->DescribeCatalog();
      catalog.generation = ++nodes[i]->state_->catalog_generation;
      leave_out(&catalog);
      if (nodes[i]->state_->durability->NoteCatalogNowOrLater(catalog).ok()) *error = absl::OkStatus();
    }
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    tables[i]->SetLife(Table::Life::kDropped);
    nodes[i]->state_->tables.Remove(id);
  }
  if (nodes.size() == 1) *error = nodes[0]->state_->durability->NoteCatalog(nodes[0]->DescribeCatalog());
  for (Database* const node : nodes) {
    UnsavedLoads& loads = node->state_->durability->loads();
    loads.Hold(id);
    loads.Forget(id);
    loads.Release(id);
  }
  PublishOn(nodes);
  return true;
}

void Database::FreeDropped(Table* table) {
  state_->indexes->Remove(table->id());
  state_->indexes->AwaitLeases();
  state_->client_caches.Forget(table->id());
  table->own_locations_.reset();
  const std::unique_ptr<index::LocalIndex> index = std::move(table->local_index_);
  FreeRows(*table, *index);
  index->ReleaseMemory();
}

Status Database::DropOn(Nodes nodes, std::string_view name) {
  std::vector<Table*> tables;
  {
    NodeLocks locks(nodes);
    GANNET_RETURN_IF_ERROR(locks.Take());
    for (const Database* const node : nodes) {
      const StatusOr<Table*> found = node->TableToDrop(name, nodes.size());
      if (!found.ok()) return found.status();
      tables.push_back(*found);
    }
    for (Table* const table : tables) {
      if (table->secondary() == nullptr) {
        table->SetLife(Table::Life::kBeingDropped);
      } else {
        table->created_ = true;  // nobody builds it meanwhile
      }
    }
  }
  if (tables.front()->secondary() != nullptr) GANNET_RETURN_IF_ERROR(EndIndexOn(nodes, tables));
  // Without the locks: a transaction that this waits for may create a table.
  const absl::Duration wait = nodes.front()->state_->options.durable_within;
  const std::string what = absl::StrCat(NameOf(*tables.front()), " was not dropped");
  Status ended = nodes.front()->AwaitOlderTransactions(wait, what);
  if (ended.ok()) ended = AwaitDebtsOn(nodes, wait, what);
  Status noted;
  bool dropped = false;
  {
    NodeLocks locks(nodes);
    if (const Status locked = locks.Take(); ended.ok()) ended = locked;
    dropped = ended.ok() && NoteDropOn(nodes, tables, &noted);
    for (Table* const table : tables) {
      if (!dropped) table->SetLife(Table::Life::kUsed);
    }
  }
  if (!dropped) {
    if (tables.front()->secondary() != nullptr) AllowBuildOn(nodes, tables);
    return ended.ok() ? noted : ended;
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    nodes[i]->FreeDropped(tables[i]);
    nodes[i]->state_->slab->Trim(/*alone=*/!nodes[i]->state_->local->calls());
  }
  if (noted.ok()) return noted;
  return Status(noted.code(),
                absl::StrCat("table '", tables.front()->name(), "' is dropped here, but the manifest could not be ",
                             "written: ", noted.message(), ". The directory may have the table until ",
                             nodes.size() == 1 ? "its" : "a node's", " next checkpoint"));
}

Status Database::DropTable(std::string_view name) {
  Database* const self = this;
  return DropOn(Nodes(&self, 1), name);
}

Status DropTableOnAllNodes(std::span<Database* const> databases, std::string_view name) {
  const StatusOr<std::vector<Database*>> nodes = Database::InOrder(databases);
  return nodes.ok() ? Database::DropOn(*nodes, name) : nodes.status();
}

}  // namespace gannet::txn
