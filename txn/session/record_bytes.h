// RecordBytes: how much memory the live records of one node take, by table. Each session counts what it makes and
// removes for itself (LiveBytes); what is made without a session, or was by sessions that are closed, is settled.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/thread.h"
#include "txn/table.h"

namespace gannet::txn {

// One writer adds (a session), anybody reads.
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
  // Tables are numbered as they are added, before any of the other calls.
  void AddTable() { settled_.push_back(0); }

  // Made or removed without a session: by calls served for other nodes, or by recovery.
  void Settle(TableId table, int64_t bytes);
  // `session` counts from now on, and lives until it is closed, when what it has counted is settled.
  void Open(const LiveBytes* session);
  void Close(const LiveBytes* session);

  int64_t Of(TableId table) const;

 private:
  mutable Mutex mutex_;  // guards what follows
  std::vector<int64_t> settled_;
  std::vector<const LiveBytes*> open_;
};

}  // namespace gannet::txn
