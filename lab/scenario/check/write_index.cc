#include "lab/scenario/check/write_index.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/random.h"

namespace gannet::scenario {

size_t WriteIndex::RowHash::operator()(const RowKey& row) const {
  return Mix64(row.key + (uint64_t{row.table} << 48));
}

WriteIndex::WriteIndex(const History& history, std::vector<Anomaly>* anomalies) {
  for (OperationId op = 0; op < history.size(); ++op) {
    for (const Access& access : history.accesses(op)) {
      const bool abandoned = access.kind == AccessKind::kAbandoned;
      if (!abandoned && access.kind != AccessKind::kWrite && access.kind != AccessKind::kRemove) continue;
      writes_.push_back(
          {access.id, access.version, op, InternKey(access.row()), access.kind == AccessKind::kRemove, abandoned});
    }
  }
  IndexIds(anomalies);
  sorted_keys_.reserve(keys_.size());
  for (KeyIndex key = 0; key < keys_.size(); ++key) sorted_keys_.emplace_back(keys_[key], key);
  std::ranges::sort(sorted_keys_);
}

void WriteIndex::IndexIds(std::vector<Anomaly>* anomalies) {
  WriteId largest = 0;
  for (const IndexedWrite& write : writes_) largest = std::max(largest, write.id);
  const bool dense = largest < 4 * writes_.size() + 64;
  if (dense) dense_ids_.resize(largest + 1, kNone);
  for (uint32_t i = 0; i < writes_.size(); ++i) {
    uint32_t& slot = dense ? dense_ids_[writes_[i].id] : sparse_ids_.emplace(writes_[i].id, kNone).first->second;
    const bool again = slot != kNone || writes_[i].id == kAbsent;
    if (slot == kNone) slot = i;
    if (!again) continue;
    const IndexedWrite& first = writes_[slot];
    anomalies->push_back({AnomalyKind::kDuplicateWrite,
                          {first.op, writes_[i].op},
                          absl::StrFormat("T%u and T%u wrote the id %u", first.op, writes_[i].op, writes_[i].id)});
  }
}

KeyIndex WriteIndex::InternKey(RowKey row) {
  const auto [entry, added] = key_index_.emplace(row, static_cast<KeyIndex>(keys_.size()));
  if (added) keys_.push_back(row);
  return entry->second;
}

KeyIndex WriteIndex::FindKey(RowKey row) const {
  const auto found = key_index_.find(row);
  return found == key_index_.end() ? kNone : found->second;
}

uint32_t WriteIndex::FindWrite(WriteId id) const {
  if (!dense_ids_.empty()) return id < dense_ids_.size() ? dense_ids_[id] : kNone;
  const auto found = sparse_ids_.find(id);
  return found == sparse_ids_.end() ? kNone : found->second;
}

std::span<const std::pair<RowKey, KeyIndex>> WriteIndex::Range(uint32_t table, uint64_t from, uint64_t to) const {
  if (from > to) return {};
  const auto row_of = [](const std::pair<RowKey, KeyIndex>& entry) { return entry.first; };
  const auto begin = std::ranges::lower_bound(sorted_keys_, RowKey{table, from}, {}, row_of);
  const auto end = std::ranges::upper_bound(begin, sorted_keys_.end(), RowKey{table, to}, {}, row_of);
  return {begin, end};
}

}  // namespace gannet::scenario
