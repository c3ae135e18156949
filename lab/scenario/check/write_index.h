// WriteIndex: assigns dense numbers to all keys and writes of a history, and maps write ids to writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "lab/scenario/check/anomaly.h"
#include "lab/scenario/check/history.h"

namespace gannet::scenario {

using KeyIndex = uint32_t;
inline constexpr uint32_t kNone = UINT32_MAX;

struct IndexedWrite {
  WriteId id;
  uint64_t version;
  OperationId op;
  KeyIndex key;
  bool remove;
  bool abandoned;
};

class WriteIndex {
 public:
  // Appends kDuplicateWrite anomalies to *anomalies.
  WriteIndex(const History& history, std::vector<Anomaly>* anomalies);

  size_t num_keys() const { return keys_.size(); }
  RowKey key(KeyIndex index) const { return keys_[index]; }
  size_t num_writes() const { return writes_.size(); }
  const IndexedWrite& write(uint32_t index) const { return writes_[index]; }

  // kNone if the key was never written, or no write has the id.
  KeyIndex FindKey(RowKey row) const;
  uint32_t FindWrite(WriteId id) const;
  // The written keys of the table in [from, to], ascending.
  std::span<const std::pair<RowKey, KeyIndex>> Range(uint32_t table, uint64_t from, uint64_t to) const;

 private:
  KeyIndex InternKey(RowKey row);
  void IndexIds(std::vector<Anomaly>* anomalies);

  struct RowHash {
    size_t operator()(const RowKey& row) const;
  };

  std::vector<RowKey> keys_;
  absl::flat_hash_map<RowKey, KeyIndex, RowHash> key_index_;
  std::vector<std::pair<RowKey, KeyIndex>> sorted_keys_;
  std::vector<IndexedWrite> writes_;
  // Ids that count up from 1, as most do, need no hash table.
  std::vector<uint32_t> dense_ids_;
  absl::flat_hash_map<WriteId, uint32_t> sparse_ids_;
};

}  // namespace gannet::scenario
