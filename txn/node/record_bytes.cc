#include "txn/node/record_bytes.h"

#include <mutex>

#include "base/check.h"

namespace gannet::txn {

void LiveBytes::GrowFor(TableId table) {
  constexpr size_t kStep = 64;
  std::vector<std::atomic<int64_t>> larger((table / kStep + 1) * kStep);
  for (size_t i = 0; i < bytes_.size(); ++i) larger[i].store(bytes_[i].load(std::memory_order_relaxed));
  const std::lock_guard lock(grow_mutex_);
  bytes_.swap(larger);
}

void RecordBytes::AddTable(TableId table) {
  const std::lock_guard lock(mutex_);
  settled_.resize(table + size_t{1});
}

void RecordBytes::Settle(TableId table, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  GANNET_CHECK(table < settled_.size(), "%d bytes of table %d, of %d", bytes, table, settled_.size());
  settled_[table] += bytes;
}

void RecordBytes::Open(const LiveBytes* session) {
  const std::lock_guard lock(mutex_);
  open_.push_back(session);
}

void RecordBytes::Close(const LiveBytes* session) {
  const std::lock_guard lock(mutex_);
  std::erase(open_, session);
  for (size_t table = 0; table < settled_.size(); ++table) {
    settled_[table] += session->Of(static_cast<TableId>(table));
  }
}

int64_t RecordBytes::Of(TableId table) const {
  const std::lock_guard lock(mutex_);
  int64_t bytes = settled_[table];
  for (const LiveBytes* session : open_) bytes += session->Of(table);
  return bytes;
}

}  // namespace gannet::txn
