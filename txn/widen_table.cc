// Database::WidenTable. A table of variable_length gets another maximum as soon as the manifest has it, so that a
// longer row is never in a log whose directory does not allow it. The rows of other tables all have the table's size,
// in memory and for every reader. So they are rewritten while nobody uses the table:
//
//   1. Keep checkpoints' walks and loads away from the table (UnsavedLoads::TryHold).
//   2. Life::kBeingWidened: accesses that begin now are conflicts. Wait for a grace period, as DropTable does.
//      Then this thread alone uses the table.
//   3. The manifest: here the table is widened durably. Rows of the log and of checkpoints are shorter, which
//      Table::least_payload_bytes allows; recovery fills them up. So the rewriting needs no log, and a crash in the
//      middle of it is completed by recovery.
//   4. Each row moves to a larger block. Its version goes on, because the log's next change of it must be newer.
//
// An error of the manifest leaves the table as it was; if the directory has it as widened, recovery fills up the rows
// that were written since, too.
#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/thread.h"
#include "index/record_header.h"
#include "index/service.h"
#include "log/checkpoint.h"
#include "txn/access/key_status.h"
#include "txn/database.h"
#include "txn/durable/catalog.h"
#include "txn/durable/durability.h"
#include "txn/owner/index_damage.h"
#include "txn/record/record.h"
#include "txn/session/session_internal.h"

namespace gannet::txn {
namespace {

constexpr uint64_t kPauseNanos = 1'000'000;

// The state of a record that no transaction uses. An ended one may owe its lock for a moment (commit/debts.h).
uint64_t AwaitUnlocked(const std::byte* record) {
  uint64_t state = LoadWord(record);
  for (; IsLocked(state); state = LoadWord(record)) SleepForNanos(kPauseNanos / 10);
  return state;
}

// Moves a record to a block with room for all of `scratch`, which has the table's new size.
Status WidenRecord(const LocalNode& local, const Table& table, index::Context& context, rdma::GlobalAddress from,
                   std::vector<std::byte>* scratch) {
  std::byte* const record = local.Direct(from);
  const uint64_t state = AwaitUnlocked(record);
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
  StoreWord(made->block, NextState(made->state, false));
  // Before the index no longer leads there: lent_records.h.
  const int64_t old_bytes = local.lent_records.Drop(from) ? 0 : BlockBytesOf(key.view(), meta.payload_bytes);
  const Status replaced = table.local_index().Replace(key.view(), from, local.node.AddressOf(made->block));
  const bool has_left = local.index_damage.HasLeft(table, key.view(), from, replaced);
  local.record_bytes.Settle(table.id(), BlockBytesOf(key.view(), scratch->size()) - old_bytes);
  MarkAbsent(record, RecordLines(key.view(), meta.payload_bytes), state);
  if (has_left) context.epoch->Retire(record, index::RecordBytes(meta.key_bytes, meta.payload_bytes), context.slab);
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
  index::WalkPosition position;
  std::vector<rdma::GlobalAddress> addresses;
  for (bool more = true; more;) {
    addresses.clear();
    index::IndexService::Lease lease(state_->indexes.get());
    more = table->local_index().Walk(&position, &addresses);
    for (const rdma::GlobalAddress address : addresses) {
      if (table->index_traits().client_writes && !IsRecordOf(*state_->local, *table, address)) {
        state_->index_damage.NoteStray(*table, address);
        return IndexDamaged(*table);
      }
      GANNET_RETURN_IF_ERROR(WidenRecord(*state_->local, *table, lease.context(), address, &scratch));
    }
  }
  return absl::OkStatus();
}

Status Database::WidenTable(std::string_view name, size_t payload_bytes) {
  Table* table = nullptr;
  const auto note = [&]() -> Status {
    Catalog catalog = DescribeCatalog();
    std::ranges::find(catalog.tables, table->id(), &log::TableDescription::id)->payload_bytes =
        static_cast<uint32_t>(payload_bytes);
    const Status noted = state_->durability->NoteCatalog(catalog);
    return noted.ok() ? noted : NotNoted("a table is widened", noted);
  };
  UnsavedLoads& loads = state_->durability->loads();
  for (;; SleepForNanos(kPauseNanos)) {
    const std::lock_guard lock(state_->create_mutex);
    const StatusOr<Table*> found = ChangeableTable(name, "WidenTable", "give every table its size before it");
    if (!found.ok()) return found.status();
    table = *found;
    const size_t now = table->payload_bytes();
    if (payload_bytes < now || payload_bytes > kMaxPayloadBytes) {
      return absl::InvalidArgumentError(absl::StrCat(NameOf(*table), " has payloads of ", now,
                                                     " bytes, and can be widened to ", kMaxPayloadBytes, " at most; ",
                                                     payload_bytes, " bytes were asked for"));
    }
    if (payload_bytes == now) return absl::OkStatus();
    GANNET_RETURN_IF_ERROR(CheckMayBeWidened(*table));
    if (table->options().variable_length) {
      GANNET_RETURN_IF_ERROR(note());
      table->payload_bytes_.store(payload_bytes, std::memory_order_release);
      table->least_payload_bytes_.store(payload_bytes, std::memory_order_release);
      return absl::OkStatus();
    }
    // A walk may take long; the table is in use meanwhile.
    if (!loads.TryHold(table->id())) continue;
    table->SetLife(Table::Life::kBeingWidened);
    break;
  }
  // Without the lock: a transaction that this waits for may create a table.
  Status ready =
      AwaitOlderTransactions(state_->options.durable_within, absl::StrCat(NameOf(*table), " was not widened"));
  const std::lock_guard lock(state_->create_mutex);
  if (ready.ok()) ready = state_->sessions.CheckOpen();
  if (ready.ok()) ready = CheckRoomToWiden(*table, payload_bytes);
  if (ready.ok()) ready = note();
  Table::Life life = Table::Life::kUsed;
  if (ready.ok()) {
    table->payload_bytes_.store(payload_bytes, std::memory_order_release);
    ready = WidenRows(table);
    if (!ready.ok()) life = Table::Life::kHalfWidened;
  }
  table->SetLife(life);
  loads.Release(table->id());
  return life == Table::Life::kUsed ? ready : CheckLife(*table);
}

}  // namespace gannet::txn
