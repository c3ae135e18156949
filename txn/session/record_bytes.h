// RecordBytes: the memory of one node's live records, by table. Each session counts its own changes (LiveBytes).
// Changes made without a session, or by closed sessions, are settled.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/thread.h"
#include "txn/table.h"

namespace gannet::txn {

// One thread adds (a session's); any thread may read.
class LiveBytes {
 public:
  explicit LiveBytes(size_t tables) : bytes_(tables) {}
  void Add(TableId table, int64_t bytes) {
    std::atomic<int64_t>& counter = bytes_[table];
    counter.store(counter.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
  int64_t Of(TableId table) const { return bytes_[table].load(std::memory_order_relaxed); }
  size_t size() const { return bytes_.size(); }

 private:
  std::vector<std::atomic<int64_t>> bytes_;
};

// Thread-safe.
class RecordBytes {
 public:
  // Tables are added in the order of their numbers, before any other call.
  void AddTable(TableId table) { settled_.resize(table + size_t{1}); }

  // For changes without a session: by calls served for other nodes, or by recovery.
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
