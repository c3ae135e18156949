// WriterSet: the channels of all writers of a log, and the inbox for commits of other nodes' workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/thread.h"
#include "log/commit/log_writer.h"
#include "log/segment/batch_buffer.h"
#include "log/segment/log_statistics.h"

namespace gannet::log {

// Thread-safe.
class WriterSet {
 public:
  // `large_limit`: limit of all large transactions together (LargeRedo). `inbox_bytes`: capacity of the inbox.
  WriterSet(size_t buffer_bytes, size_t large_limit, size_t inbox_bytes)
      : buffer_bytes_(buffer_bytes), large_limit_(large_limit), inbox_limit_(inbox_bytes) {}

  // ResourceExhausted: all buffers together would exceed the largest batch.
  StatusOr<std::shared_ptr<WriterChannel>> Open();
  // Appends a whole encoded transaction. ResourceExhausted: the inbox is full until the next batch.
  Status AppendToInbox(std::span<const std::byte> transaction);

  // Smallest epoch in a slot; SlotWord::kIdle if all are idle. Call it after the current epoch was read or raised
  // (epoch_slot.h).
  uint64_t OldestSlot() const;
  // Moves everything into `batch`, which is empty. Forgets writers that are closed and empty. Returns the number of
  // bytes that the large transactions have taken from LargeRedo; the caller gives them back when the batch is durable.
  // `closed_epoch`: the one that earlier batches have closed. No writer may have left anything of it or of an earlier
  // one.
  uint64_t MoveAllInto(BatchBuffer* batch, uint64_t closed_epoch);
  // Largest number of bytes in all buffers at once, without large transactions.
  uint64_t Capacity() const;
  // Fills in transactions, changes, payload_bytes and record_bytes.
  LogStatistics Counters() const;

 private:
  const size_t buffer_bytes_;
  const size_t large_limit_;
  const size_t inbox_limit_;
  mutable Mutex mutex_;  // guards the next two
  std::vector<std::shared_ptr<WriterChannel>> channels_;
  LogStatistics forgotten_;  // of closed writers

  mutable Mutex inbox_mutex_;  // guards the members below
  std::vector<std::byte> inbox_;
  uint64_t inbox_transactions_ = 0;
  uint64_t inbox_bytes_ = 0;  // total since the start
};

}  // namespace gannet::log
