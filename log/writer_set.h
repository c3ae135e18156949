// WriterSet: the channels of all writers of a log, and the inbox for commits of other nodes' workers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "log/batch_buffer.h"
#include "log/log.h"
#include "log/log_writer.h"
#include "rdma/base/status.h"

namespace gannet::log {

// Thread-safe.
class WriterSet {
 public:
  // `inbox_bytes`: how much may lie in the inbox at once.
  WriterSet(size_t buffer_bytes, size_t inbox_bytes) : buffer_bytes_(buffer_bytes), inbox_limit_(inbox_bytes) {}

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
  const size_t inbox_limit_;
  mutable absl::Mutex mutex_;
  std::vector<std::shared_ptr<WriterChannel>> channels_ ABSL_GUARDED_BY(mutex_);
  LogStatistics forgotten_ ABSL_GUARDED_BY(mutex_);  // of closed writers

  mutable absl::Mutex inbox_mutex_;
  std::vector<std::byte> inbox_ ABSL_GUARDED_BY(inbox_mutex_);
  uint64_t inbox_transactions_ ABSL_GUARDED_BY(inbox_mutex_) = 0;
  uint64_t inbox_bytes_ ABSL_GUARDED_BY(inbox_mutex_) = 0;  // ever
};

}  // namespace gannet::log
