#include "txn/durable/table_rebuilder.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/stop.h"
#include "base/thread.h"
#include "txn/access/arena.h"
#include "txn/durable/redo_key.h"
#include "txn/record/record.h"
#include "txn/session/session_internal.h"

namespace gannet::txn {
namespace {

constexpr double kFill = 0.9;  // as BulkLoader
constexpr size_t kRecordsPerLease = 4096;

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Runs all of `work` on `threads` threads, until one fails.
Status RunAll(const std::vector<std::function<Status()>>& work, int threads) {
  std::atomic<size_t> next{0};
  std::vector<Status> statuses(static_cast<size_t>(std::max(threads, 1)));
  std::atomic<bool> failed{false};
  const auto run = [&](Status* status) {
    for (size_t i = next++; i < work.size() && !failed.load(); i = next++) {
      *status = work[i]();
      if (!status->ok()) {
        failed.store(true);
        return;
      }
    }
  };
  std::vector<Thread> others;
  for (size_t i = 1; i < statuses.size(); ++i)
    others.emplace_back("rebuild", [&run, &statuses, i] { run(&statuses[i]); });
  run(&statuses[0]);
  for (Thread& thread : others) thread.join();
  for (const Status& status : statuses) GANNET_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

// Takes one lease of a context after another, so that a long load does not hold back the grace period.
class Leases {
 public:
  explicit Leases(index::IndexService* service) : service_(service) {}
  // The context for one record.
  index::Context& context() {
    if (used_++ % kRecordsPerLease == 0) {
      lease_.reset();
      lease_.emplace(service_);
    }
    return lease_->context();
  }

 private:
  index::IndexService* service_;
  size_t used_ = 0;
  std::optional<index::IndexService::Lease> lease_;
};

}  // namespace

bool TableRebuilder::IsSuperseded(const log::CheckpointRecord& record) {
  const LatestChange* latest = changes_->Find(record.table, AsText(record.key));
  if (latest == nullptr) return false;
  // In epochs that the checkpoint may have seen, the version decides. Changes of later epochs are newer, those of
  // earlier ones are in it.
  if (latest->epoch > checkpoint_.end_epoch) return true;
  return latest->epoch >= checkpoint_.begin_epoch && latest->version >= record.version;
}

StatusOr<rdma::GlobalAddress> TableRebuilder::MakeRecord(index::Context& context, const Table& table,
                                                         std::string_view key_bytes, std::string_view payload) {
  GANNET_RETURN_IF_ERROR(CheckStop(local_->options.stop, "records were made"));
  const TableOptions& options = table.options();
  const bool key_fits = options.key_kind == index::KeyKind::kInteger ? key_bytes.size() == index::kIntegerKeyBytes
                                                                     : key_bytes.size() <= options.max_key_bytes;
  if (!key_fits || !table.MayHaveHad(payload.size())) {
    return absl::DataLossError(absl::StrCat(directory_, " has a record of table '", table.name(), "' with a key of ",
                                            key_bytes.size(), " and a payload of ", payload.size(),
                                            " bytes, which do not fit the table"));
  }
  std::string widened;
  if (!options.variable_length && payload.size() < table.payload_bytes()) [[unlikely]] {
    widened.assign(payload);
    widened.resize(table.payload_bytes(), '\0');
    payload = widened;
  }
  const Key key = KeyFromRedo(options.key_kind, std::as_bytes(std::span(key_bytes)));
  StatusOr<NewRecord> made =
      MakeLockedRecord(*context.slab, table.id(), key, std::as_bytes(std::span(payload)), OwnerBits(0, 0));
  if (!made.ok()) return made.status();
  StoreWord(made->block, NextState(made->state, false));
  records_.fetch_add(1, std::memory_order_relaxed);
  bytes_[table.id()].fetch_add(BlockBytesOf(key, payload.size()), std::memory_order_relaxed);
  return local_->node.AddressOf(made->block);
}

// Null if damage is not to be left out: then the first damage ends the reading.
TableRebuilder::OnDamage TableRebuilder::DamageNoter(const log::CheckpointFile& file) {
  if (!salvage_) return {};
  return [this, &file](uint64_t offset, const std::string& what) {
    std::lock_guard lock(mutex_);
    left_out_.push_back(
        absl::StrCat(log::CheckpointDirectory(directory_, checkpoint_.id), "/", file.name, " at ", offset, ": ", what));
  };
}

Status TableRebuilder::GiveUpIfDamaged(const Table& table, const Status& status) {
  if (!absl::IsDataLoss(status)) return status;
  std::lock_guard lock(mutex_);
  damages_[table.id()].Update(status);
  return absl::OkStatus();
}

bool TableRebuilder::IsGivenUp(const Table& table) {
  std::lock_guard lock(mutex_);
  return !damages_[table.id()].ok();
}

void TableRebuilder::Discard(index::Context& context, const Table& table, rdma::GlobalAddress record) {
  std::byte* block = local_->Direct(record);
  const index::RecordMeta meta = index::LoadMeta(block);
  const index::OwnedKey key = index::LoadKey(block, table.options().key_kind);
  MarkAbsent(block, RecordLines(key.view(), meta.payload_bytes), LoadWord(block));
  context.slab->Free(block, index::RecordBytes(key.view().size(), meta.payload_bytes));
  bytes_[table.id()].fetch_sub(BlockBytesOf(key.view(), meta.payload_bytes), std::memory_order_relaxed);
  records_.fetch_sub(1, std::memory_order_relaxed);
}

// ---------------------------------------------------------------------------------------------------------------------
// Ordered tables: the checkpoint's records come in key order, and so do the sorted changes. Merged, they are the input
// of LocalIndex::BulkLoad.

class TableRebuilder::OrderedRebuild {
 public:
  OrderedRebuild(TableRebuilder* owner, const Table& table)
      : owner_(owner),
        table_(table),
        changes_(owner->changes_->Sorted(table.id(), 0, LatestChanges::kParts)),
        leases_(&owner->local_->indexes) {
    size_t records = changes_.size();
    for (const log::CheckpointFile& file : owner->checkpoint_.files) {
      if (file.table == table.id()) records += std::min(file.records, file.bytes);  // whatever a damaged file says
    }
    entries_.reserve(records);
  }

  Status AddCheckpointed(const log::CheckpointRecord& record) {
    const RedoKeyView key(AsText(record.key));
    GANNET_RETURN_IF_ERROR(AddChangesBelow(&key));
    if (next_ < changes_.size() && changes_[next_].first == key) {
      if (owner_->IsSuperseded(record)) return absl::OkStatus();  // the change comes with the next call
      ++next_;
    }
    return Add(key.bytes(), AsText(record.payload));
  }
  // Adds all that are left if `limit` is null.
  Status AddChangesBelow(const RedoKeyView* limit) {
    constexpr size_t kAhead = 8;
    for (; next_ < changes_.size() && (limit == nullptr || changes_[next_].first < *limit); ++next_) {
      if (next_ + 2 * kAhead < changes_.size()) __builtin_prefetch(changes_[next_ + 2 * kAhead].second);
      if (next_ + kAhead < changes_.size()) __builtin_prefetch(changes_[next_ + kAhead].second->payload);
      const auto& [key, change] = changes_[next_];
      if (!change->removed) GANNET_RETURN_IF_ERROR(Add(key.bytes(), change->bytes()));
    }
    return absl::OkStatus();
  }
  Status Finish() {
    GANNET_RETURN_IF_ERROR(AddChangesBelow(nullptr));
    return table_.local_index().BulkLoad(leases_.context(), entries_, kFill);
  }
  // Called instead of Finish.
  void GiveUp() {
    for (const index::LoadEntry& entry : entries_) owner_->Discard(leases_.context(), table_, entry.record);
  }

 private:
  Status Add(std::string_view key, std::string_view payload) {
    const StatusOr<rdma::GlobalAddress> record = owner_->MakeRecord(leases_.context(), table_, key, payload);
    if (!record.ok()) return record.status();
    entries_.push_back({arena_.Keep(KeyFromRedo(table_.options().key_kind, std::as_bytes(std::span(key)))), *record});
    return absl::OkStatus();
  }

  TableRebuilder* owner_;
  const Table& table_;
  const std::vector<LatestChanges::Change> changes_;
  size_t next_ = 0;
  std::vector<index::LoadEntry> entries_;
  Arena arena_;  // the bytes of their keys
  Leases leases_;
};

Status TableRebuilder::RebuildOrdered(const Table& table) {
  OrderedRebuild rebuild(this, table);
  for (const log::CheckpointFile& file : checkpoint_.files) {
    if (file.table != table.id()) continue;
    const Status read = log::ReadCheckpointFile(
        *files_, directory_, checkpoint_.id, file,
        [&](const log::CheckpointRecord& record) { return rebuild.AddCheckpointed(record); }, DamageNoter(file));
    if (read.ok()) continue;
    if (!absl::IsCancelled(read)) rebuild.GiveUp();
    return GiveUpIfDamaged(table, read);
  }
  return rebuild.Finish();
}

// ---------------------------------------------------------------------------------------------------------------------
// Tables without order: any order, by several threads. A checkpoint may have a record twice (because its bucket split
// during the walk). Then both have the same version, or the log has a newer one.

Status TableRebuilder::AddToUnordered(index::Context& context, const Table& table, std::string_view key,
                                      std::string_view payload) {
  const Key view = KeyFromRedo(table.options().key_kind, std::as_bytes(std::span(key)));
  if (!table.local_index().Find(view).record.is_null()) return absl::OkStatus();
  const StatusOr<rdma::GlobalAddress> record = MakeRecord(context, table, key, payload);
  if (!record.ok()) return record.status();
  const StatusOr<index::Change> change = table.local_index().Insert(context, view, *record, nullptr);
  if (!absl::IsAlreadyExists(change.status())) return change.status();
  Discard(context, table, *record);  // another thread was faster
  return absl::OkStatus();
}

Status TableRebuilder::LoadUnorderedFile(const Table& table, const log::CheckpointFile& file) {
  if (IsGivenUp(table)) return absl::OkStatus();
  Leases leases(&local_->indexes);
  const Status read = log::ReadCheckpointFile(
      *files_, directory_, checkpoint_.id, file,
      [&](const log::CheckpointRecord& record) -> Status {
        if (IsSuperseded(record)) return absl::OkStatus();
        return AddToUnordered(leases.context(), table, AsText(record.key), AsText(record.payload));
      },
      DamageNoter(file));
  return GiveUpIfDamaged(table, read);
}

// A walk may miss entries if buckets split or merge during it, so this repeats it until nothing is left.
Status TableRebuilder::Empty(const Table& table) {
  std::vector<rdma::GlobalAddress> records;
  for (bool empty = false; !empty;) {
    empty = true;
    index::WalkPosition position;
    for (bool more = true; more;) {
      records.clear();
      index::IndexService::Lease lease(&local_->indexes);
      more = table.local_index().Walk(&position, &records);
      for (const rdma::GlobalAddress record : records) {
        const std::byte* block = local_->Direct(record);
        const index::OwnedKey key = index::LoadKey(block, table.options().key_kind);
        const StatusOr<index::Change> removed = table.local_index().Remove(lease.context(), key.view(), record);
        if (absl::IsNotFound(removed.status())) continue;  // found twice
        if (!removed.ok()) return removed.status();
        Discard(lease.context(), table, record);
        empty = false;
      }
    }
  }
  return absl::OkStatus();
}

// Called after the checkpoint's files: their content is at least as new as a change that does not supersede it.
Status TableRebuilder::AddUnorderedChanges(const Table& table, size_t part) {
  Leases leases(&local_->indexes);
  // In key order: the map's own order depends on which thread was faster, and so would the layout of the table.
  for (const auto& [key, change] : changes_->Sorted(table.id(), part, part + 1)) {
    if (!change->removed) GANNET_RETURN_IF_ERROR(AddToUnordered(leases.context(), table, key.bytes(), change->bytes()));
  }
  return absl::OkStatus();
}

Status TableRebuilder::LoadFiles(const std::vector<const Table*>& tables, int threads) {
  std::vector<std::function<Status()>> work;
  for (const Table* table : tables) {
    if (table->index_traits().keeps_order) work.emplace_back([this, table] { return RebuildOrdered(*table); });
  }
  for (const log::CheckpointFile& file : checkpoint_.files) {
    const Table* table = local_->TableById(file.table);
    if (table == nullptr) {
      return absl::DataLossError(
          absl::StrCat(directory_, ": the checkpoint has a table ", file.table, " that the manifest does not name"));
    }
    if (!table->index_traits().keeps_order && std::ranges::find(tables, table) != tables.end()) {
      work.emplace_back([this, table, &file] { return LoadUnorderedFile(*table, file); });
    }
  }
  return RunAll(work, threads);
}

Status TableRebuilder::AddChanges(const std::vector<const Table*>& tables, int threads) {
  std::vector<std::function<Status()>> work;
  for (const Table* table : tables) {
    if (table->index_traits().keeps_order || IsGivenUp(*table)) continue;
    for (size_t part = 0; part < LatestChanges::kParts; ++part) {
      work.emplace_back([this, table, part] { return AddUnorderedChanges(*table, part); });
    }
  }
  return RunAll(work, threads);
}

Status TableRebuilder::Rebuild(const std::vector<const Table*>& tables, int threads,
                               std::vector<DamagedTable>* damaged) {
  GANNET_RETURN_IF_ERROR(LoadFiles(tables, threads));
  GANNET_RETURN_IF_ERROR(AddChanges(tables, threads));
  for (const Table* table : tables) {
    if (!IsGivenUp(*table)) continue;
    if (!table->index_traits().keeps_order) GANNET_RETURN_IF_ERROR(Empty(*table));
    damaged->push_back({table, std::exchange(damages_[table->id()], absl::OkStatus())});
  }
  return absl::OkStatus();
}

Status TableRebuilder::Salvage(const std::vector<const Table*>& tables, int threads) {
  salvage_ = true;
  std::vector<DamagedTable> damaged;
  GANNET_RETURN_IF_ERROR(Rebuild(tables, threads, &damaged));
  return damaged.empty() ? absl::OkStatus() : damaged.front().damage;  // not covered by a checksum: it does not fit
}

void TableRebuilder::Count(RecoveryReport* report) {
  report->records += records_.load();
  report->damages.insert(report->damages.end(), left_out_.begin(), left_out_.end());
  for (size_t i = 0; i < bytes_.size(); ++i) local_->record_bytes.Settle(static_cast<TableId>(i), bytes_[i].load());
}

}  // namespace gannet::txn
