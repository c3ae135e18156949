// RecordMaker: makes the records that recovery puts into the tables.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "index/key.h"
#include "index/service.h"
#include "txn/node/local_node.h"
#include "txn/store/table.h"

namespace gannet::txn {

// The records that all makers of a recovery have made and not discarded.
struct RecordCounts {
  explicit RecordCounts(size_t tables) : bytes(tables) {}

  std::atomic<int64_t> records{0};
  std::vector<std::atomic<int64_t>> bytes;  // of their blocks, by table
};

// DataLoss, naming the directory, if the table cannot have a record with a key and a payload of these bytes. A removed
// key has no payload.
Status CheckFits(const Table& table, const std::string& directory, size_t key_bytes,
                 std::optional<size_t> payload_bytes);

// One thread; many makers may work at the same time. Its counts are added to `counts` when it is destroyed.
class RecordMaker {
 public:
  // Both must outlive this.
  RecordMaker(const LocalNode* local, RecordCounts* counts)
      : local_(local), counts_(counts), bytes_(counts->bytes.size()) {}
  ~RecordMaker();
  RecordMaker(const RecordMaker&) = delete;
  RecordMaker& operator=(const RecordMaker&) = delete;

  // Makes a committed record in this node's memory. Key and payload fit the table. ResourceExhausted: no memory.
  StatusOr<std::byte*> Make(const Table& table, const index::Key& key, std::span<const std::byte> payload);
  // Gives `record`, which has this key and is in no index, another payload. Returns it, or another one in its place.
  StatusOr<std::byte*> Rewrite(const Table& table, std::byte* record, const index::Key& key,
                               std::span<const std::byte> payload);
  // Frees a record that is in no index.
  void Discard(const Table& table, std::byte* record);

  rdma::GlobalAddress AddressOf(const std::byte* record) const { return local_->node.AddressOf(record); }
  // Resources for one more change of an index. Takes one guard after another, so that a long load does not hold back
  // the grace period.
  index::Context& context() {
    if (used_++ % kRecordsPerLease == 0) NextLease();
    return guard_->context();
  }

 private:
  static constexpr size_t kRecordsPerLease = 4096;

  void NextLease();
  // The payload, or a copy with zeros at its end: of a table that was widened since (Table::least_payload_bytes). Also
  // of the empty payload of a removed key.
  std::span<const std::byte> Widened(const Table& table, std::span<const std::byte> payload);

  const LocalNode* local_;
  RecordCounts* counts_;
  int64_t records_ = 0;
  std::vector<int64_t> bytes_;  // by table
  size_t used_ = 0;
  std::optional<index::IndexService::Guard> guard_;
  std::vector<std::byte> widened_;
};

}  // namespace gannet::txn
