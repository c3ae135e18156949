// WriterSet: the channels of all writers of a log, and the inbox for commits of other nodes' workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "log/batch_buffer.h"
#include "log/log.h"
#include "log/log_writer.h"
#include "rdma/base/status.h"
#include "rdma/base/thread.h"

namespace gannet::log {

// Thread-safe.
class WriterSet {
 public:
  // `inbox_bytes`: how much may lie in the inbox at once.
  WriterSet(size_t buffer_bytes, size_t large_buffer_bytes, size_t inbox_bytes)
      : buffer_bytes_(buffer_bytes), large_buffer_bytes_(large_buffer_bytes), inbox_limit_(inbox_bytes) {}

  // ResourceExhausted: the buffers together would be larger than a batch can be.
  StatusOr<std::shared_ptr<WriterChannel>> Open();
  // A whole encoded transaction. ResourceExhausted: full until the next batch.
  Status AppendToInbox(std::span<const std::byte> transaction);

  // The least epoch that a slot shows, SlotWord::kIdle if none does. To be called after the current epoch was read or
  // raised (epoch_slot.h).
  uint64_t OldestSlot() const;
  // Moves everything into `batch`, which is empty. Forgets writers that are closed and empty.
  void MoveAllInto(BatchBuffer* batch);
  // How much can be in the buffers at once.
  uint64_t Capacity() const;
  // transactions, changes, payload_bytes, record_bytes.
  LogStatistics Counters() const;

 private:
  const size_t buffer_bytes_;
  const size_t large_buffer_bytes_;
  const size_t inbox_limit_;
  mutable Mutex mutex_;  // guards the next two
  std::vector<std::shared_ptr<WriterChannel>> channels_;
  LogStatistics forgotten_;  // of closed writers

  mutable Mutex inbox_mutex_;  // guards what follows
  std::vector<std::byte> inbox_;
  uint64_t inbox_transactions_ = 0;
  uint64_t inbox_bytes_ = 0;  // ever
};

}  // namespace gannet::log
