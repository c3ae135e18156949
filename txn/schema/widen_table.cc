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
//   2. State::kBeingWidened: accesses that begin now are conflicts. Wait for a grace period, as dropping a table does,
//      and for the pending operations and the calls of the transactions that have ended. Then this thread alone uses
//      the table.
//   3. The manifests: here the table is widened durably. Rows of the log and of checkpoints are shorter, which
//      Table::least_payload_bytes allows; recovery fills them up. So the rewriting needs no log, and a crash in the
//      middle of it is completed by recovery.
//   4. All nodes get the new size. On each node every row moves to a larger block. Its version goes on, because the
//      log's next change of it must be newer.
//   5. State::kUsed, on all nodes. Those whose turn comes later accept what the first ones send: handlers of calls look
//      at the size, not at the state.
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
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "index/record_header.h"
#include "index/service.h"
#include "log/manifest/manifest.h"
#include "txn/durable/durability.h"
#include "txn/node/record_walk.h"
#include "txn/peer/unused_records.h"
#include "txn/record/record.h"
#include "txn/schema/catalog_notes.h"
#include "txn/schema/new_table.h"
#include "txn/schema/quiesce.h"
#include "txn/schema/schema.h"
#include "txn/store/key_status.h"

namespace gannet::txn {
namespace {

constexpr absl::string_view kInsteadOfWiden =
    "use WidenTableOnAllNodes if all are in this process, or give every table its size before it";

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

// The entries of an index must stay those of the rows.
Status CheckMayBeWidened(const DatabaseState& node, const Table& table) {
  if (table.secondary() != nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(NameOf(table), " has the entries of a secondary index"));
  }
  for (const Table* other : node.tables) {
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
Status CheckRoomToWiden(const DatabaseState& node, const Table& table, size_t payload_bytes) {
  const size_t key_bytes = table.options().key_kind == index::KeyKind::kInteger ? index::kIntegerKeyBytes : 0;
  const auto block_bytes = [&](size_t payload) {
    return rdma::SlabAllocator::BlockBytes(index::RecordBytes(key_bytes, payload));
  };
  const auto bytes = static_cast<uint64_t>(std::max<int64_t>(0, node.record_bytes.Of(table.id())));
  const size_t old_block = block_bytes(table.payload_bytes());
  const uint64_t more = bytes / old_block * (block_bytes(payload_bytes) - old_block);
  const rdma::SlabStatistics memory = node.slab->statistics();
  const uint64_t free = memory.capacity_bytes - memory.carved_bytes + memory.free_bytes;
  if (more <= free) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(NameOf(table), " was not widened: its rows would take up to ", more,
                                                   " bytes more, and ", free, " are free; give the database more ",
                                                   "memory"));
}

Status WidenRows(DatabaseState& node, const Table& table) {
  std::vector<std::byte> scratch(table.payload_bytes());
  RecordWalk walk(*node.local, table);
  while (walk.has_more()) {
    index::IndexService::Guard guard(node.indexes.get());
    const auto records = walk.Next();
    if (!records.ok()) return records.status();
    for (const rdma::GlobalAddress address : *records) {
      GANNET_RETURN_IF_ERROR(WidenRecord(*node.local, table, guard.context(), address, &scratch));
    }
  }
  return absl::OkStatus();
}

// Makes it the size of the table, durably and in memory.
Status NoteWidth(Nodes nodes, Tables tables, size_t payload_bytes) {
  GANNET_RETURN_IF_ERROR(
      NoteTableOn(nodes, "a table is widened", tables.front()->id(),
                  [&](log::TableDescription* table) { table->payload_bytes = static_cast<uint32_t>(payload_bytes); }));
  for (Table* const table : tables) table->Widen(payload_bytes);
  PublishOn(nodes);
  return absl::OkStatus();
}

// Checks, and takes the table from others that widen it, and, unless the length of its rows is variable, from all
// others. False: a walk or a load of it is in progress, or another call widens it. `tables` is empty if there is
// nothing to do any more.
StatusOr<bool> BeginToWiden(Nodes nodes, std::string_view name, size_t payload_bytes, std::vector<Table*>* tables) {
  tables->clear();
  StatusOr<std::vector<Table*>> found = ChangeableTables(nodes, name, "WidenTable", kInsteadOfWiden);
  if (!found.ok()) return found.status();
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Table& table = *(*found)[i];
    const size_t now = table.payload_bytes();
    if (payload_bytes < now || payload_bytes > kMaxPayloadBytes) {
      return absl::InvalidArgumentError(absl::StrCat(NameOf(table), " has payloads of ", now,
                                                     " bytes, and can be widened to ", kMaxPayloadBytes, " at most; ",
                                                     payload_bytes, " bytes were asked for"));
    }
    if (payload_bytes == now) return true;
    GANNET_RETURN_IF_ERROR(CheckMayBeWidened(*nodes[i], table));
  }
  const Table& first = *found->front();
  if (first.options().variable_length) {
    if (nodes.size() == 1) {
      GANNET_RETURN_IF_ERROR(NoteWidth(nodes, *found, payload_bytes));
      return true;
    }
    if (first.grows()) return false;
    for (Table* const table : *found) table->BeginToGrow(payload_bytes);
  } else {
    if (!TryHoldLoads(nodes, first.id())) return false;
    for (Table* const table : *found) table->SetState(Table::State::kBeingWidened);
  }
  *tables = *std::move(found);
  return true;
}

// Nobody uses the table, unless the length of its rows is variable. *half: some rows may have moved, and others may
// not.
Status WidenUnused(Nodes nodes, Tables tables, size_t payload_bytes, bool* half) {
  const bool moves = !tables.front()->options().variable_length;
  for (size_t i = 0; i < nodes.size(); ++i) {
    nodes[i]->indexes->AwaitGuards();
    if (!moves) continue;
    GANNET_RETURN_IF_ERROR(OfNode(nodes, *nodes[i], CheckRoomToWiden(*nodes[i], *tables[i], payload_bytes)));
  }
  GANNET_RETURN_IF_ERROR(NoteWidth(nodes, tables, payload_bytes));
  for (size_t i = 0; moves && i < nodes.size(); ++i) {
    const Status widened = WidenRows(*nodes[i], *tables[i]);
    *half = !widened.ok();
    if (*half) return OfNode(nodes, *nodes[i], widened);
  }
  return absl::OkStatus();
}

}  // namespace

Status Schema::WidenTable(std::string_view name, size_t payload_bytes) {
  std::vector<Table*> tables;
  GANNET_RETURN_IF_ERROR(Hold(nodes_, [&] { return BeginToWiden(nodes_, name, payload_bytes, &tables); }));
  if (tables.empty()) return absl::OkStatus();
  Table& first = *tables.front();
  const bool grows = first.grows();
  bool half = false;
  const auto apply = [&] {
    if (grows) {  // it was in use: it may have been dropped, or have got a secondary index
      GANNET_RETURN_IF_ERROR(CheckState(first));
      GANNET_RETURN_IF_ERROR(CheckMayBeWidened(*nodes_.front(), first));
    }
    return WidenUnused(nodes_, tables, payload_bytes, &half);
  };
  const auto release = [&](const Status&) {
    for (Table* const table : tables) {
      if (grows) {
        table->EndGrowing();
      } else {
        table->SetState(half ? Table::State::kHalfWidened : Table::State::kUsed);
      }
    }
    if (!grows) ReleaseLoads(nodes_, first.id());
  };
  const Status widened = ApplyAlone(nodes_, absl::StrCat(NameOf(first), " was not widened"),
                                    grows ? Awaits::kTransactions : Awaits::kTheirPendingToo, apply, release);
  return half ? CheckState(first) : widened;
}

}  // namespace gannet::txn
