#include "txn/durable/latest_changes.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <utility>

#include "base/cache_line.h"
#include "txn/durable/redo_key.h"

namespace gannet::txn {

namespace {

// Changes whose entries, or records, are fetched at once. More are not, because a core waits for about ten lines at a
// time.
constexpr size_t kChangesAtOnce = 16;
// Bytes of a record that are fetched; more follow by themselves.
constexpr size_t kMostFetched = 4 * kLineBytes;

std::span<const uint16_t> FirstOf(std::span<const uint16_t> items, size_t most) {
  return items.first(std::min(items.size(), most));
}

}  // namespace

LatestChanges::LatestChanges(const LocalNode* local, std::string directory, const std::vector<const Table*>& tables,
                             int threads, RecordCounts* counts)
    : local_(local),
      directory_(std::move(directory)),
      counts_(counts),
      tables_(local->tables.id_bound()),
      parts_(std::bit_ceil(std::min(static_cast<size_t>(threads) * kPartsPerThread, kMostParts))) {
  for (const Table* table : tables) tables_[table->id()] = table;
}

size_t LatestChanges::size(const Table& table) const {
  size_t size = 0;
  for (size_t part = 0; part < parts(); ++part) {
    if (const ChangeMap* map = MapOf(table, part); map != nullptr) size += map->size();
  }
  return size;
}

ChangeMap* LatestChanges::MakeMap(Part* part, const Table& table) {
  if (part->maps.size() <= table.id()) part->maps.resize(table.id() + size_t{1});
  std::unique_ptr<ChangeMap>& map = part->maps[table.id()];
  if (map == nullptr) map = std::make_unique<ChangeMap>(table.options().key_kind, &hash_);
  return map.get();
}

void LatestChanges::Drop(const Table& table, size_t part, RecordMaker* maker) {
  const ChangeMap* map = MapOf(table, part);
  if (map == nullptr) return;
  if (table.options().key_kind == index::KeyKind::kBytes) {
    map->ForEach([&](const ChangeMap::Entry& entry) {
      if (entry.removed()) maker->Discard(table, entry.record());
    });
  }
  parts_[part].maps[table.id()].reset();
}

void LatestChanges::Discard(const Table& table) {
  RecordMaker maker(local_, counts_);
  for (size_t part = 0; part < parts(); ++part) {
    const ChangeMap* map = MapOf(table, part);
    if (map == nullptr) continue;
    map->ForEach([&](const ChangeMap::Entry& entry) {
      if (!entry.removed()) maker.Discard(table, entry.record());
    });
    Drop(table, part, &maker);
  }
}

LatestChanges::Adder::Adder(LatestChanges* to, size_t number)
    : to_(to),
      maker_(to->local_, to->counts_),
      order_(kMostItems),
      first_part_(number * kPartsPerThread % to->parts()) {
  items_.reserve(kMostItems);
}

Status LatestChanges::Adder::Add(uint64_t epoch, std::span<const log::ChangeView> changes) {
  for (const log::ChangeView& change : changes) {
    const Table* const table = to_->Wanted(change.table);
    if (table == nullptr) continue;
    const std::span<const std::byte> bytes = change.key();
    const bool is_put = change.kind == log::ChangeKind::kPut;
    GANNET_RETURN_IF_ERROR(
        CheckFits(*table, to_->directory_, bytes.size(), is_put ? std::optional(change.payload.size()) : std::nullopt));
    const HashedKey key = to_->Hashed(KeyFromRedo(table->options().key_kind, bytes));
    items_.push_back({.hash = key.hash, .number = key.number, .epoch = epoch, .change = &change});
    if (items_.size() == kMostItems) GANNET_RETURN_IF_ERROR(Flush());
  }
  return absl::OkStatus();
}

void LatestChanges::Adder::SortByPart() {
  // Counts the items of part p in [p + 2], so that placing them makes [p + 1] the end of part p.
  begins_.assign(to_->parts() + 2, 0);
  for (const Item& item : items_) ++begins_[to_->PartOf(item.number) + 2];
  for (size_t part = 0; part < to_->parts(); ++part) begins_[part + 2] += begins_[part + 1];
  for (size_t i = 0; i < items_.size(); ++i)
    order_[begins_[to_->PartOf(items_[i].number) + 1]++] = static_cast<uint16_t>(i);
}

void LatestChanges::Adder::PrefetchEntries(size_t part, Group group) {
  for (const uint16_t i : group) {
    const Item& item = items_[i];
    const uint64_t hint = HintOf(&to_->parts_[part], item.change->table).load(std::memory_order_relaxed);
    ChangeMap::PrefetchAt(hint, item.hash);
  }
}

// The caller holds the part's lock.
void LatestChanges::Adder::PrefetchRecords(const Part& part, Group group) const {
  for (const uint16_t i : group) {
    const Item& item = items_[i];
    const size_t table = item.change->table;
    if (table >= part.maps.size() || part.maps[table] == nullptr) continue;
    const ChangeMap::Entry* entry = part.maps[table]->Guess(item.number, item.hash);
    if (entry == nullptr || entry->record() == nullptr) continue;
    const size_t bytes = index::RecordBytes(item.change->key().size(), item.change->payload.size());
    for (size_t at = 0; at < std::min(bytes, kMostFetched); at += kLineBytes) PrefetchToWrite(entry->record() + at);
  }
}

Status LatestChanges::Adder::Apply(Part* part, const Item& item) {
  const log::ChangeView& change = *item.change;
  const Table& table = *to_->tables_[change.table];
  ChangeMap* map = change.table < part->maps.size() ? part->maps[change.table].get() : nullptr;
  if (map == nullptr) map = to_->MakeMap(part, table);
  const index::KeyKind kind = table.options().key_kind;
  const HashedKey key(KeyFromRedo(kind, change.key()), item.hash, item.number);
  ChangeMap::Entry* entry = map->FindOrMakeRoom(key);
  if (entry->used()) {
    if (std::pair(item.epoch, change.version) <= std::pair(entry->epoch, entry->version)) return absl::OkStatus();
  }
  std::byte* record = entry->used() ? entry->record() : nullptr;
  const bool removed = change.kind == log::ChangeKind::kRemove;
  if (removed && kind == index::KeyKind::kInteger) {
    if (record != nullptr) maker_.Discard(table, record);
    record = nullptr;
  } else {
    const StatusOr<std::byte*> made = record == nullptr ? maker_.Make(table, key.key, change.payload)
                                                        : maker_.Rewrite(table, record, key.key, change.payload);
    if (!made.ok()) return made.status();
    record = *made;
  }
  if (!entry->used()) {
    map->Use(entry, key);
    std::atomic<uint64_t>& hint = HintOf(part, change.table);
    if (hint.load(std::memory_order_relaxed) != map->hint()) hint.store(map->hint(), std::memory_order_relaxed);
  }
  entry->epoch = item.epoch;
  entry->version = change.version;
  entry->Set(record, removed);
  return absl::OkStatus();
}

// Entries are fetched two groups ahead, records one group. The entries of the first two groups have been fetched
// before, and here those of the next part's first two are.
Status LatestChanges::Adder::ApplyAll(size_t part, Group items, size_t next_part, Group next_items) {
  if (items.empty()) {
    PrefetchEntries(next_part, FirstOf(next_items, 2 * kChangesAtOnce));
    return absl::OkStatus();
  }
  Part& its = to_->parts_[part];
  const std::lock_guard lock(its.mutex);
  PrefetchRecords(its, FirstOf(items, kChangesAtOnce));
  while (!items.empty()) {
    const Group now = FirstOf(items, kChangesAtOnce);
    items = items.subspan(now.size());
    if (items.size() > kChangesAtOnce) PrefetchEntries(part, FirstOf(items.subspan(kChangesAtOnce), kChangesAtOnce));
    if (items.empty()) PrefetchEntries(next_part, FirstOf(next_items, 2 * kChangesAtOnce));
    PrefetchRecords(its, FirstOf(items, kChangesAtOnce));
    for (const uint16_t i : now) GANNET_RETURN_IF_ERROR(Apply(&its, items_[i]));
  }
  return absl::OkStatus();
}

Status LatestChanges::Adder::Flush() {
  if (items_.empty()) return absl::OkStatus();
  SortByPart();
  const auto part_of = [this](size_t step) { return (first_part_ + step) % to_->parts(); };
  const auto items_of = [this](size_t part) {
    return Group(order_).subspan(begins_[part], begins_[part + 1] - begins_[part]);
  };
  PrefetchEntries(part_of(0), FirstOf(items_of(part_of(0)), 2 * kChangesAtOnce));
  for (size_t step = 0; step < to_->parts(); ++step) {
    const size_t part = part_of(step);
    const size_t next = part_of(step + 1);
    const bool last = step + 1 == to_->parts();
    GANNET_RETURN_IF_ERROR(ApplyAll(part, items_of(part), next, last ? Group() : items_of(next)));
  }
  first_part_ = part_of(1);
  items_.clear();
  return absl::OkStatus();
}

}  // namespace gannet::txn
