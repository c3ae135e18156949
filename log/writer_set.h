// WriterSet: the channels of all writers of a log, and the inbox for commits of other nodes' workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/thread.h"
#include "log/batch_buffer.h"
#include "log/log.h"
#include "log/log_writer.h"

namespace gannet::log {

// Thread-safe.
class WriterSet {
 public:
  // `large_limit`: how much large transactions may take at once (LargeRedo); `inbox_bytes`: what may lie in the inbox.
  WriterSet(size_t buffer_bytes, size_t large_limit, size_t inbox_bytes)
      : buffer_bytes_(buffer_bytes), large_limit_(large_limit), inbox_limit_(inbox_bytes) {}

  // ResourceExhausted: the buffers together would be larger than a batch can be.
  StatusOr<std::shared_ptr<WriterChannel>> Open();
  // A whole encoded transaction. ResourceExhausted: full until the next batch.
  Status AppendToInbox(std::span<const std::byte> transaction);

  // The least epoch that a slot shows, SlotWord::kIdle if none does. To be called after the current epoch was read or
  // raised (epoch_slot.h).
  uint64_t OldestSlot() const;
  // Moves everything into `batch`, which is empty. Forgets writers that are closed and empty. Returns how much of
  // LargeRedo the large transactions had taken, for the caller to give back when the batch is durable.
  uint64_t MoveAllInto(BatchBuffer* batch);
  // How much can be in the buffers at once, large transactions apart.
  uint64_t Capacity() const;
  // transactions, changes, payload_bytes, record_bytes.
  LogStatistics Counters() const;

 private:
  const size_t buffer_bytes_;
  const size_t large_limit_;
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
