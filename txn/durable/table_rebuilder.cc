#include "txn/durable/table_rebuilder.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "rdma/base/thread.h"
#include "txn/durable/redo_key.h"
#include "txn/record.h"
#include "txn/session_internal.h"

namespace gannet::txn {
namespace {

constexpr double kFill = 0.9;  // as BulkLoader
constexpr size_t kRecordsPerLease = 4096;

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Runs all of `work` by `threads` threads, until one fails.
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

// One lease of a context after another, so that a long load does not hold back the grace period.
class Leases {
 public:
  explicit Leases(index::IndexService* service) : service_(service) {}
  // For one record.
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
  // Of epochs that the checkpoint may have seen, the version decides; later ones are newer, earlier ones are in it.
  if (latest->epoch > checkpoint_.end_epoch) return true;
  return latest->epoch >= checkpoint_.begin_epoch && latest->version >= record.version;
}

StatusOr<rdma::GlobalAddress> TableRebuilder::MakeRecord(index::Context& context, const Table& table,
                                                         std::string_view key_bytes, std::string_view payload) {
  const TableOptions& options = table.options();
  const bool key_fits = options.key_kind == index::KeyKind::kInteger ? key_bytes.size() == index::kIntegerKeyBytes
                                                                     : key_bytes.size() <= options.max_key_bytes;
  if (!key_fits || payload.size() > options.payload_bytes ||
      (!options.variable_length && payload.size() != options.payload_bytes)) {
    return absl::DataLossError(absl::StrCat(directory_, " has a record of table '", table.name(), "' with a key of ",
                                            key_bytes.size(), " and a payload of ", payload.size(),
                                            " bytes, which do not fit the table"));
  }
  const Key key = KeyFromRedo(options.key_kind, std::as_bytes(std::span(key_bytes)));
  StatusOr<NewRecord> made =
      MakeLockedRecord(*context.slab, table.id(), key, std::as_bytes(std::span(payload)), OwnerBits(0, 0));
  if (!made.ok()) return made.status();
  StoreWord(made->block, NextState(made->state, false));
  records_.fetch_add(1, std::memory_order_relaxed);
  bytes_[table.id()].fetch_add(BlockBytesOf(key, payload.size()), std::memory_order_relaxed);
  return state_->node->AddressOf(made->block);
}

void TableRebuilder::NoteDamage(const log::CheckpointFile& file, uint64_t offset, const std::string& what) {
  std::lock_guard lock(damages_mutex_);
  damages_.push_back(
      absl::StrCat(log::CheckpointDirectory(directory_, checkpoint_.id), "/", file.name, " at ", offset, ": ", what));
}

// ---------------------------------------------------------------------------------------------------------------------
// Ordered tables: the checkpoint's records come in key order, so do the changes once sorted; merged, they are what
// LocalIndex::BulkLoad wants.

class TableRebuilder::OrderedRebuild {
 public:
  OrderedRebuild(TableRebuilder* owner, const Table& table)
      : owner_(owner), table_(table), leases_(owner->state_->indexes.get()) {
    for (size_t part = 0; part < LatestChanges::kParts; ++part) {
      const LatestChanges::Map* map = owner->changes_->MapOf(part, table.id());
      if (map == nullptr) continue;
      for (const auto& [key, change] : *map) changes_.emplace_back(key, &change);
    }
    std::sort(changes_.begin(), changes_.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
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
  // All that are left if `limit` is null.
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

 private:
  Status Add(std::string_view key, std::string_view payload) {
    const StatusOr<rdma::GlobalAddress> record = owner_->MakeRecord(leases_.context(), table_, key, payload);
    if (!record.ok()) return record.status();
    entries_.push_back(
        {index::OwnedKey(KeyFromRedo(table_.options().key_kind, std::as_bytes(std::span(key)))), *record});
    return absl::OkStatus();
  }

  TableRebuilder* owner_;
  const Table& table_;
  std::vector<std::pair<RedoKeyView, const LatestChange*>> changes_;
  size_t next_ = 0;
  std::vector<index::Entry> entries_;
  Leases leases_;
};

Status TableRebuilder::RebuildOrdered(const Table& table) {
  OrderedRebuild rebuild(this, table);
  for (const log::CheckpointFile& file : checkpoint_.files) {
    if (file.table != table.id()) continue;
    GANNET_RETURN_IF_ERROR(log::ReadCheckpointFile(
        *files_, directory_, checkpoint_.id, file,
        [&](const log::CheckpointRecord& record) { return rebuild.AddCheckpointed(record); },
        state_->options.salvage ? [&](uint64_t offset, const std::string& what) { NoteDamage(file, offset, what); }
                                : std::function<void(uint64_t, const std::string&)>()));
  }
  return rebuild.Finish();
}

// ---------------------------------------------------------------------------------------------------------------------
// Hash tables: any order, from several threads. A checkpoint may have a record twice (its bucket split meanwhile); then
// both are of the same version or the log has a newer one.

Status TableRebuilder::AddToHash(index::Context& context, const Table& table, std::string_view key,
                                 std::string_view payload) {
  const Key view = KeyFromRedo(table.options().key_kind, std::as_bytes(std::span(key)));
  if (!table.local_index().Find(view).record.is_null()) return absl::OkStatus();
  const StatusOr<rdma::GlobalAddress> record = MakeRecord(context, table, key, payload);
  if (!record.ok()) return record.status();
  const StatusOr<index::Change> change = table.local_index().Insert(context, view, *record, nullptr);
  if (!absl::IsAlreadyExists(change.status())) return change.status();
  // Another thread was faster; nobody has seen this one.
  std::byte* block = state_->node->memory().data() + record->offset();
  MarkAbsent(block, RecordLines(view, payload.size()), LoadWord(block));
  context.slab->Free(block, index::RecordBytes(view.size(), payload.size()));
  bytes_[table.id()].fetch_sub(BlockBytesOf(view, payload.size()), std::memory_order_relaxed);
  records_.fetch_sub(1, std::memory_order_relaxed);
  return absl::OkStatus();
}

Status TableRebuilder::LoadHashFile(const Table& table, const log::CheckpointFile& file) {
  Leases leases(state_->indexes.get());
  return log::ReadCheckpointFile(
      *files_, directory_, checkpoint_.id, file,
      [&](const log::CheckpointRecord& record) -> Status {
        if (IsSuperseded(record)) return absl::OkStatus();
        return AddToHash(leases.context(), table, AsText(record.key), AsText(record.payload));
      },
      state_->options.salvage ? [&](uint64_t offset, const std::string& what) { NoteDamage(file, offset, what); }
                              : std::function<void(uint64_t, const std::string&)>());
}

// After the checkpoint's files: what they have is at least as new as the change if it was not superseded.
Status TableRebuilder::AddHashChanges(const Table& table, size_t part) {
  const LatestChanges::Map* map = changes_->MapOf(part, table.id());
  if (map == nullptr) return absl::OkStatus();
  Leases leases(state_->indexes.get());
  // In the order of the keys: the map's own differs from process to process, and with it the layout of the table.
  std::vector<const LatestChanges::Map::value_type*> sorted;
  sorted.reserve(map->size());
  for (const auto& entry : *map) sorted.push_back(&entry);
  std::sort(sorted.begin(), sorted.end(),
            [](const auto* a, const auto* b) { return a->first.bytes() < b->first.bytes(); });
  for (const auto* entry : sorted) {
    const auto& [key, change] = *entry;
    if (!change.removed) GANNET_RETURN_IF_ERROR(AddToHash(leases.context(), table, key.bytes(), change.bytes()));
  }
  return absl::OkStatus();
}

Status TableRebuilder::RebuildAll(int threads, RecoveryReport* report) {
  std::vector<std::function<Status()>> work;
  for (const std::unique_ptr<Table>& table : state_->tables) {
    if (table->options().index == IndexKind::kXStore) work.emplace_back([&] { return RebuildOrdered(*table); });
  }
  for (const log::CheckpointFile& file : checkpoint_.files) {
    const Table* table = state_->TableById(file.table);
    if (table == nullptr) {
      return absl::DataLossError(
          absl::StrCat(directory_, ": the checkpoint has a table ", file.table, " that the manifest does not name"));
    }
    if (table->options().index == IndexKind::kHash) {
      work.emplace_back([this, table, &file] { return LoadHashFile(*table, file); });
    }
  }
  GANNET_RETURN_IF_ERROR(RunAll(work, threads));
  work.clear();
  for (const std::unique_ptr<Table>& table : state_->tables) {
    if (table->options().index != IndexKind::kHash) continue;
    for (size_t part = 0; part < LatestChanges::kParts; ++part) {
      work.emplace_back([this, table = table.get(), part] { return AddHashChanges(*table, part); });
    }
  }
  GANNET_RETURN_IF_ERROR(RunAll(work, threads));
  report->records = records_.load();
  std::lock_guard lock(state_->sessions_mutex);
  for (size_t i = 0; i < bytes_.size(); ++i) state_->settled_bytes[i] += bytes_[i].load();
  report->damages.insert(report->damages.end(), damages_.begin(), damages_.end());
  return absl::OkStatus();
}

}  // namespace gannet::txn
