// Database::DropTable. The order of its steps:
//
//   1. Life::kBeingDropped: accesses that begin now are refused.
//   2. Wait for a grace period. A transaction is inside the epoch from its begin to its end, so those that could have
//      found the table usable have ended, and so have loads (BulkLoader::Finish). A step that comes too late is
//      refused: it loads Table::life inside the epoch, as a reader loads a link to a block that may be retired
//      (rdma/epoch.h). If this takes too long, the table is usable again, and nothing has happened.
//   3. Life::kDropped, which never ends: whoever writes the manifest from here on leaves out the table and its rows
//      (LeaveOutDropped). So no manifest has the table and a checkpoint without its rows.
//   4. The manifest: here the table is dropped durably. The number of a table is never used again, so the log's changes
//      of it are changes of no table to recovery, which leaves them out.
//   5. Wait for a checkpoint's walk over the table, which ends early (UnsavedLoads::Hold). Then the index has no user.
//   6. The memory of the rows and of the index goes back to the slab, and from there to the system.
//
// Before a secondary index is dropped, nobody keeps it any more (EndIndex).
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
#include "txn/access/key_status.h"
#include "txn/database.h"
#include "txn/durable/catalog.h"
#include "txn/durable/durability.h"
#include "txn/owner/index_damage.h"
#include "txn/record/record.h"
#include "txn/session/session_internal.h"

namespace gannet::txn {

Status Database::AwaitOlderTransactions(absl::Duration wait, absl::string_view what) {
  constexpr uint64_t kPauseNanos = 200'000;
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
    SleepForNanos(kPauseNanos);
  }
}

void Database::FreeRows(const Table& table, index::LocalIndex& index) {
  index::WalkPosition position;
  std::vector<rdma::GlobalAddress> addresses;
  for (bool more = true; more;) {
    addresses.clear();
    index::IndexService::Lease lease(&*state_->indexes);
    more = index.Walk(&position, &addresses);
    for (const rdma::GlobalAddress address : addresses) {
      if (table.index_traits().client_writes && !IsRecordOf(*state_->local, table, address)) {
        state_->index_damage.NoteStray(table, address);
        continue;
      }
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

// The catalog calls the index incomplete before anybody stops keeping it, so no crash leaves a wrong one that is called
// complete. After an error it is one that CreateIndex can build again, and that can be dropped.
Status Database::EndIndex(Table* entries) {
  Status ended = NoteIndex(entries, /*complete=*/false);
  if (ended.ok()) {
    {
      const std::lock_guard lock(state_->create_mutex);
      SetKept(state_->tables.ById(entries->secondary()->table().id()), entries->secondary(), false);
    }
    // Transactions that began before may still change entries.
    ended = AwaitOlderTransactions(state_->options.durable_within,
                                   absl::StrCat("index '", entries->name(), "' is no longer kept, but not dropped"));
  }
  const std::lock_guard lock(state_->create_mutex);
  if (ended.ok()) ended = state_->sessions.CheckOpen();
  if (ended.ok()) {
    entries->SetLife(Table::Life::kBeingDropped);
  } else {
    entries->created_ = false;
  }
  return ended;
}

Status Database::DropTable(std::string_view name) {
  Table* table = nullptr;
  {
    const std::lock_guard lock(state_->create_mutex);
    const StatusOr<Table*> found = ChangeableTable(name, "DropTable", "keep the table, or make it empty");
    if (!found.ok()) return found.status();
    table = *found;
    if (const std::string index = NameOfAnIndexOf(*table); !index.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat(NameOf(*table), " has the secondary index '", index, "': drop that first"));
    }
    if (table->secondary() == nullptr) {
      table->SetLife(Table::Life::kBeingDropped);
    } else if (table->created_ && !table->secondary()->is_complete()) {
      return absl::FailedPreconditionError(absl::StrCat(table->secondary()->Describe(), " is being built, or dropped"));
    } else {
      table->created_ = true;  // nobody builds it meanwhile
    }
  }
  if (table->secondary() != nullptr) GANNET_RETURN_IF_ERROR(EndIndex(table));
  // Without the lock: a transaction that this waits for may create a table.
  Status ended =
      AwaitOlderTransactions(state_->options.durable_within, absl::StrCat(NameOf(*table), " was not dropped"));
  std::unique_ptr<index::LocalIndex> index;
  Status noted;
  {
    const std::lock_guard lock(state_->create_mutex);
    if (ended.ok()) ended = state_->sessions.CheckOpen();
    if (!ended.ok()) {
      table->SetLife(Table::Life::kUsed);
      if (table->secondary() != nullptr) table->created_ = false;
      return ended;
    }
    table->SetLife(Table::Life::kDropped);
    state_->tables.Remove(table->id());
    noted = state_->durability->NoteCatalog(DescribeCatalog());
    UnsavedLoads& loads = state_->durability->loads();
    loads.Hold(table->id());
    loads.Forget(table->id());
    loads.Release(table->id());
    index = std::move(table->local_index_);
  }
  FreeRows(*table, *index);
  state_->indexes->Remove(table->id());
  index->ReleaseMemory();
  index.reset();
  state_->slab->Trim(/*alone=*/!state_->local->calls());
  if (noted.ok()) return noted;
  return Status(noted.code(),
                absl::StrCat("table '", table->name(), "' is dropped here, but the manifest could not be written: ",
                             noted.message(), ". The directory may have the table until its next checkpoint"));
}

}  // namespace gannet::txn
