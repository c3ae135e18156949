#include "txn/session/write_set.h"

#include <tuple>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"

namespace gannet::txn {
namespace {

// Number of entries whose memory is kept for the next transaction.
constexpr size_t kMostKept = 16 * 1024;

struct KeyName {
  TableId table;
  index::Key key;
  friend bool operator<(const KeyName& a, const KeyName& b) {
    return a.table != b.table ? a.table < b.table : a.key < b.key;
  }
};

bool IsKeyed(const WriteEntry& entry) {
  return entry.kind == WriteKind::kInsert || entry.kind == WriteKind::kRemove;
}

bool IsLiveInsert(const WriteEntry& entry) {
  return entry.kind == WriteKind::kInsert && !entry.removed;
}

}  // namespace

struct WriteSet::Large {
  absl::flat_hash_map<uint64_t, uint32_t> records;  // by address; if two entries have the same record, the first
  absl::btree_map<KeyName, uint32_t> keys;          // the keys of NoteKey; if two entries have the same key, the first
};

WriteSet::WriteSet() = default;
WriteSet::~WriteSet() = default;

uint64_t WriteSet::HashOf(const Table& table, const index::Key& key) {
  const uint64_t hash = key.kind() == index::KeyKind::kInteger ? key.integer() : absl::HashOf(key.bytes());
  return (hash ^ uint64_t{table.id()} << 48) * 0x9e3779b97f4a7c15ull;
}

void WriteSet::Grow() {
  if (large_ == nullptr) {
    large_ = std::make_unique<Large>();
    for (size_t i = 0; i + 1 < entries_.size(); ++i) {
      if (addresses_[i] != 0) large_->records.try_emplace(addresses_[i], static_cast<uint32_t>(i));
      if (IsKeyed(entries_[i])) NoteKeyOfLarge(i);
    }
  }
  if (addresses_.back() != 0) {
    large_->records.try_emplace(addresses_.back(), static_cast<uint32_t>(entries_.size() - 1));
  }
}

int WriteSet::FindFiltered(uint64_t address) const {
  if (large_ != nullptr) {
    const auto found = large_->records.find(address);
    return found == large_->records.end() ? -1 : static_cast<int>(found->second);
  }
  for (size_t i = 0; i < addresses_.size(); ++i) {
    if (addresses_[i] == address) return static_cast<int>(i);
  }
  return -1;
}

void WriteSet::SetRecord(size_t i, rdma::GlobalAddress record) {
  if (large_ != nullptr) {
    const auto old = large_->records.find(addresses_[i]);
    if (old != large_->records.end() && old->second == i) large_->records.erase(old);
    large_->records.insert_or_assign(record.bits(), static_cast<uint32_t>(i));
  }
  entries_[i].record = record;
  addresses_[i] = record.bits();
  Filter(record) |= FilterBit(record);
}

void WriteSet::NoteKey(size_t i) {
  const uint64_t hash = HashOf(*entries_[i].table, entries_[i].key);
  key_filter_[hash >> 62] |= uint64_t{1} << (hash >> 56 & 63);
  if (large_ != nullptr) NoteKeyOfLarge(i);
}

void WriteSet::NoteKeyOfLarge(size_t i) {
  large_->keys.try_emplace(KeyName{entries_[i].table->id(), entries_[i].key}, static_cast<uint32_t>(i));
}

int WriteSet::FindKey(const Table& table, const index::Key& key) const {
  const uint64_t hash = HashOf(table, key);
  if ((key_filter_[hash >> 62] >> (hash >> 56 & 63) & 1) == 0) [[likely]]
    return -1;
  if (large_ != nullptr) {
    const auto found = large_->keys.find(KeyName{table.id(), key});
    return found != large_->keys.end() && IsKeyed(entries_[found->second]) ? static_cast<int>(found->second) : -1;
  }
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (IsKeyed(entries_[i]) && entries_[i].table == &table && entries_[i].key == key) return static_cast<int>(i);
  }
  return -1;
}

void WriteSet::InsertsIn(const Table& table, const index::ScanRange& range, std::vector<uint32_t>* numbers) const {
  if (large_ == nullptr) {
    for (uint32_t i = 0; i < entries_.size(); ++i) {
      const WriteEntry& entry = entries_[i];
      if (!IsLiveInsert(entry) || entry.table != &table || entry.key < range.from || range.to < entry.key) continue;
      numbers->push_back(i);
    }
    return;
  }
  auto first = large_->keys.lower_bound(KeyName{table.id(), range.from});
  auto end = large_->keys.upper_bound(KeyName{table.id(), range.to});
  const size_t most = range.limit < SIZE_MAX - numbers->size() ? numbers->size() + range.limit : SIZE_MAX;
  while (first != end && numbers->size() < most) {
    const uint32_t i = range.reverse ? (--end)->second : (first++)->second;
    if (IsLiveInsert(entries_[i])) numbers->push_back(i);
  }
}

size_t WriteSet::RemovalsIn(const Table& table, const index::ScanRange& range) const {
  size_t n = 0;
  if (large_ == nullptr) {
    for (const WriteEntry& entry : entries_) {
      n += entry.kind == WriteKind::kRemove && entry.table == &table && !(entry.key < range.from) &&
           !(range.to < entry.key);
    }
    return n;
  }
  const auto end = large_->keys.upper_bound(KeyName{table.id(), range.to});
  for (auto at = large_->keys.lower_bound(KeyName{table.id(), range.from}); at != end; ++at) {
    n += entries_[at->second].kind == WriteKind::kRemove;
  }
  return n;
}

void WriteSet::Clear() {
  if (entries_.empty()) return;
  entries_.clear();
  addresses_.clear();
  filter_.fill(0);
  key_filter_.fill(0);
  if (large_ == nullptr) [[likely]]
    return;
  large_ = nullptr;
  if (entries_.capacity() <= kMostKept) return;
  entries_ = {};
  addresses_ = {};
}

}  // namespace gannet::txn
