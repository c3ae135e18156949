// Widening a table, on one node or on all nodes of a fabric together. The manifest has the new size before any row of
// it, so that a longer row is never in a log whose directory does not allow it.
//
// A table of variable_length gets another maximum. On several nodes, all accept it before one of them may send another
// one such a row:
//
//   1. Table::accepted_payload_bytes, on all nodes: owners make longer rows, readers have room for them.
//   2. Wait for a grace period, and for the calls that are being served (drop_table.cc): nothing is in progress that
//      has looked at the smaller size.
//   3. The manifests, and then Table::payload_bytes, on all nodes: sessions may write longer rows.
//
// The rows of other tables all have the table's size, in memory and for every reader. So they are rewritten while
// nobody uses the table, on any node:
//
//   1. Keep checkpoints' walks and loads away from the table (UnsavedLoads::TryHold).
//   2. Life::kBeingWidened: accesses that begin now are conflicts. Wait for a grace period, as dropping a table does,
//      and for the debts and the calls of the transactions that have ended. Then this thread alone uses the table.
//   3. The manifests: here the table is widened durably. Rows of the log and of checkpoints are shorter, which
//      Table::least_payload_bytes allows; recovery fills them up. So the rewriting needs no log, and a crash in the
//      middle of it is completed by recovery.
//   4. All nodes get the new size. On each node every row moves to a larger block. Its version goes on, because the
//      log's next change of it must be newer.
//   5. Life::kUsed, on all nodes. Those whose turn comes later accept what the first ones send: handlers of calls look
//      at the size, not at the life.
//
// Sessions may remember addresses of blocks that rows have left. They are smaller than what a READ of a row takes now,
// and one may be the last block of its node's memory. So a session opens the index again when it finds that the table
// was widened (SessionState::RemoteIndexOf), and forgets what it knew.
//
// An error of the manifest leaves the table as it was; if the directory has it as widened, recovery fills up the rows
// that were written since, too.
#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
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
#include "txn/peer/unused_records.h"
#include "txn/record/record.h"
#include "txn/store/key_status.h"

namespace gannet::txn {
namespace {

constexpr absl::string_view kInsteadOfWiden =
    "use WidenTableOnAllNodes if all are in this process, or give every table its size before it";
constexpr uint64_t kWidenPauseNanos = 1'000'000;

// Moves a record to a block with room for all of `scratch`, which has the table's new size.
Status WidenRecord(const LocalNode& local, const Table& table, index::Context& context, rdma::GlobalAddress from,
                   std::vector<std::byte>* scratch) {
  std::byte* const record = local.Direct(from);
  const StatusOr<uint64_t> unlocked = AwaitUnlocked(table, record);
  if (!unlocked.ok()) return unlocked.status();
  const uint64_t state = *unlocked;
  const index::RecordMeta meta = index::LoadMeta(record);
  if (IsAbsent(state) || meta.payload_bytes == scratch->size()) return absl::OkStatus();
  const index::OwnedKey key = index::LoadKey(record, table.options().key_kind);
  std::ranges::fill(*scratch, std::byte{0});
  uint64_t seen = 0;
  const bool is_whole = rdma::TryReadLocal(record, index::PayloadDataOffset(meta.key_bytes),
                                           std::span(*scratch).first(meta.payload_bytes), &seen);
  GANNET_CHECK(is_whole && seen == state, "a record of table '%s' changed while it was widened", table.name());
  const StatusOr<NewRecord> made =
      MakeLockedRecord(*context.slab, table.id(), key.view(), *scratch, OwnerBits(0, 0), VersionOf(state));
  if (!made.ok()) return made.status();
  if (!MoveRow(local, table, key.view(), from, state, *made)) return absl::OkStatus();
  context.epoch->Retire(record, index::RecordBytes(meta.key_bytes, meta.payload_bytes), context.slab);
  return absl::OkStatus();
}

}  // namespace

// The entries of an index must stay those of the rows.
Status Database::CheckMayBeWidened(const Table& table) const {
  if (table.secondary() != nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(NameOf(table), " has the entries of a secondary index"));
  }
  for (const Table* other : state_->tables) {
    const SecondaryIndex* const index = other->secondary();
    if (index == nullptr || &index->table() != &table) continue;
    const bool open = std::ranges::any_of(index->fields(), [](const IndexField& field) {
      return field.source == IndexField::Source::kPayload && field.bytes == 0;
    });
    if (!open && !index->by_function()) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        index->Describe(), " has keys from whole payloads: drop it, widen the table, and create it again"));
  }
  return absl::OkStatus();
}

// Keys of the shortest kind make the most rows.
Status Database::CheckRoomToWiden(const Table& table, size_t payload_bytes) const {
  const size_t key_bytes = table.options().key_kind == index::KeyKind::kInteger ? index::kIntegerKeyBytes : 0;
  const auto block_bytes = [&](size_t payload) {
    return rdma::SlabAllocator::BlockBytes(index::RecordBytes(key_bytes, payload));
  };
  const auto bytes = static_cast<uint64_t>(std::max<int64_t>(0, state_->record_bytes.Of(table.id())));
  const size_t old_block = block_bytes(table.payload_bytes());
  const uint64_t more = bytes / old_block * (block_bytes(payload_bytes) - old_block);
  const rdma::SlabStatistics memory = state_->slab->statistics();
  const uint64_t free = memory.capacity_bytes - memory.carved_bytes + memory.free_bytes;
  if (more <= free) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(NameOf(table), " was not widened: its rows would take up to ", more,
                                                   " bytes more, and ", free, " are free; give the database more ",
                                                   "memory"));
}

Status Database::WidenRows(Table* table) {
  std::vector<std::byte> scratch(table->payload_bytes());
  RecordWalk walk(*state_->local, *table);
  while (walk.has_more()) {
    index::IndexService::Lease lease(state_->indexes.get());
    const auto records = walk.Next();
    if (!records.ok()) return records.status();
    for (const rdma::GlobalAddress address : *records) {
      GANNET_RETURN_IF_ERROR(WidenRecord(*state_->local, *table, lease.context(), address, &scratch));
    }
  }
  return absl::OkStatus();
}

// Checks, and takes the table from others that widen it, and, unless the length of its rows is variable, from all
// others. False: a walk or a load of it is in progress, or another call widens it. `tables` is empty if there is
// nothing to do any more. The caller has NodeLocks.
StatusOr<bool> Database::BeginToWiden(Nodes nodes, std::string_view name, size_t payload_bytes,
                                      std::vector<Table*>* tables) {
  tables->clear();
  std::vector<Table*> found;
  for (const Database* const node : nodes) {
    const StatusOr<Table*> table = node->ChangeableTable(name, "WidenTable", kInsteadOfWiden, nodes.size());
    if (!table.ok()) return table.status();
    const size_t now = (*table)->payload_bytes();
    if (payload_bytes < now || payload_bytes > kMaxPayloadBytes) {
      return absl::InvalidArgumentError(absl::StrCat(NameOf(**table), " has payloads of ", now,
                                                     " bytes, and can be widened to ", kMaxPayloadBytes, " at most; ",
                                                     payload_bytes, " bytes were asked for"));
    }
    if (payload_bytes == now) return true;
    GANNET_RETURN_IF_ERROR(node->CheckMayBeWidened(**table));
    found.push_back(*table);
  }
  if (found.front()->options().variable_length) {
    if (nodes.size() == 1) {
      GANNET_RETURN_IF_ERROR(NoteWidthOn(nodes, found, payload_bytes));
      return true;
    }
    if (found.front()->grows_) return false;
    for (Table* const table : found) {
      table->grows_ = true;
      table->accepted_payload_bytes_.store(payload_bytes, std::memory_order_release);
    }
    *tables = std::move(found);
    return true;
  }
  const TableId id = found.front()->id();
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i]->state_->durability->loads().TryHold(id)) continue;
    while (i > 0) nodes[--i]->state_->durability->loads().Release(id);
    return false;
  }
  for (Table* const table : found) table->SetLife(Table::Life::kBeingWidened);
  *tables = std::move(found);
  return true;
}

// Makes it the size of the table, durably and in memory.
Status Database::NoteWidthOn(Nodes nodes, Tables tables, size_t payload_bytes) {
  const TableId id = tables.front()->id();
  GANNET_RETURN_IF_ERROR(NoteOn(nodes, "a table is widened", [&](Catalog* catalog) {
    std::ranges::find(catalog->tables, id, &log::TableDescription::id)->payload_bytes =
        static_cast<uint32_t>(payload_bytes);
  }));
  for (Table* const table : tables) {
    table->accepted_payload_bytes_.store(payload_bytes, std::memory_order_release);
    table->payload_bytes_.store(payload_bytes, std::memory_order_release);
    if (table->options().variable_length) table->least_payload_bytes_.store(payload_bytes, std::memory_order_release);
  }
  PublishOn(nodes);
  return absl::OkStatus();
}

// Nobody uses the table, unless the length of its rows is variable. *half: some rows may have moved, and others may
// not.
Status Database::WidenReadyOn(Nodes nodes, Tables tables, size_t payload_bytes, bool* half) {
  const bool moves = !tables.front()->options().variable_length;
  const auto of_node = [&](const Database& node, const Status& wrong) {
    return nodes.size() == 1 ? wrong : OfNode(node, wrong);
  };
  for (size_t i = 0; i < nodes.size(); ++i) {
    nodes[i]->state_->indexes->AwaitLeases();
    const Status room = moves ? nodes[i]->CheckRoomToWiden(*tables[i], payload_bytes) : absl::OkStatus();
    if (!room.ok()) return of_node(*nodes[i], room);
  }
  GANNET_RETURN_IF_ERROR(NoteWidthOn(nodes, tables, payload_bytes));
  for (size_t i = 0; moves && i < nodes.size(); ++i) {
    const Status widened = nodes[i]->WidenRows(tables[i]);
    *half = !widened.ok();
    if (*half) return of_node(*nodes[i], widened);
  }
  return absl::OkStatus();
}

Status Database::WidenOn(Nodes nodes, std::string_view name, size_t payload_bytes) {
  std::vector<Table*> tables;
  for (;; SleepForNanos(kWidenPauseNanos)) {
    NodeLocks locks(nodes);
    GANNET_RETURN_IF_ERROR(locks.Take());
    const StatusOr<bool> begun = BeginToWiden(nodes, name, payload_bytes, &tables);
    if (!begun.ok()) return begun.status();
    if (!*begun) continue;  // a walk may take long; the table is in use meanwhile
    if (tables.empty()) return absl::OkStatus();
    break;
  }
  // Without the locks: a transaction that this waits for may create a table.
  const bool grows = tables.front()->grows_;
  const absl::Duration wait = nodes.front()->state_->options.durable_within;
  const std::string what = absl::StrCat(NameOf(*tables.front()), " was not widened");
  Status widened = nodes.front()->AwaitOlderTransactions(wait, what);
  if (widened.ok() && !grows) widened = AwaitDebtsOn(nodes, wait, what);
  NodeLocks locks(nodes);
  if (const Status locked = locks.Take(); widened.ok()) widened = locked;
  // It was in use: it may have been dropped, or have got a secondary index.
  if (widened.ok() && grows) widened = CheckLife(*tables.front());
  if (widened.ok() && grows) widened = nodes.front()->CheckMayBeWidened(*tables.front());
  bool half = false;
  if (widened.ok()) widened = WidenReadyOn(nodes, tables, payload_bytes, &half);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (grows) {
      tables[i]->accepted_payload_bytes_.store(tables[i]->payload_bytes(), std::memory_order_release);
      tables[i]->grows_ = false;
      continue;
    }
    tables[i]->SetLife(half ? Table::Life::kHalfWidened : Table::Life::kUsed);
    nodes[i]->state_->durability->loads().Release(tables[i]->id());
  }
  return half ? CheckLife(*tables.front()) : widened;
}

Status Database::WidenTable(std::string_view name, size_t payload_bytes) {
  Database* const self = this;
  return WidenOn(Nodes(&self, 1), name, payload_bytes);
}

Status WidenTableOnAllNodes(std::span<Database* const> databases, std::string_view name, size_t payload_bytes) {
  const StatusOr<std::vector<Database*>> nodes = Database::InOrder(databases);
  return nodes.ok() ? Database::WidenOn(*nodes, name, payload_bytes) : nodes.status();
}

}  // namespace gannet::txn
