// RecordBytes: the memory of one node's live records, by table. Each session counts its own changes (LiveBytes).
// Changes made without a session, or by closed sessions, are settled.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/thread.h"
#include "txn/store/table.h"

namespace gannet::txn {

// One thread adds (a session's); any thread may read. It grows by itself for tables that are created later.
class LiveBytes {
 public:
  explicit LiveBytes(size_t tables) : bytes_(tables) {}
  void Add(TableId table, int64_t bytes) {
    if (table >= bytes_.size()) [[unlikely]]
      GrowFor(table);
    std::atomic<int64_t>& counter = bytes_[table];
    counter.store(counter.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
  int64_t Of(TableId table) const {
    const std::lock_guard lock(grow_mutex_);
    return table < bytes_.size() ? bytes_[table].load(std::memory_order_relaxed) : 0;
  }
  size_t size() const {
    const std::lock_guard lock(grow_mutex_);
    return bytes_.size();
  }

 private:
  [[gnu::cold]] void GrowFor(TableId table);

  std::vector<std::atomic<int64_t>> bytes_;
  // Held while the vector is replaced, and by readers. The thread that adds needs it for nothing else: only this thread
  // changes anything.
  mutable Mutex grow_mutex_;
};

// Thread-safe.
class RecordBytes {
 public:
  // Called before the table is used.
  void AddTable(TableId table);

  // Counts changes without a session: those by calls served for other nodes, or by recovery.
  void Settle(TableId table, int64_t bytes);
  // `session` counts from now on, and must live until it is closed, when its count is settled.
  void Open(const LiveBytes* session);
  void Close(const LiveBytes* session);

  int64_t Of(TableId table) const;

 private:
  mutable Mutex mutex_;  // guards the members below
  std::vector<int64_t> settled_;
  std::vector<const LiveBytes*> open_;
};

}  // namespace gannet::txn
