#include "txn/session/record_bytes.h"

#include <mutex>

namespace gannet::txn {

void RecordBytes::Settle(TableId table, int64_t bytes) {
  const std::lock_guard lock(mutex_);
  settled_[table] += bytes;
}

void RecordBytes::Open(const LiveBytes* session) {
  const std::lock_guard lock(mutex_);
  open_.push_back(session);
}

void RecordBytes::Close(const LiveBytes* session) {
  const std::lock_guard lock(mutex_);
  std::erase(open_, session);
  for (size_t table = 0; table < session->size(); ++table) {
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
