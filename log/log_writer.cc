#include "log/log_writer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace gannet::log {

LogWriter::~LogWriter() {
  channel_->slot.epoch.store(SlotWord::kIdle, std::memory_order_release);
  channel_->closed.store(true, std::memory_order_release);
}

void LogWriter::AskForRoom() {
  channel_->ring.LookAtTail();
  if (channel_->ring.GetsFull()) shared_->signal.Urgent();
}

Status LogWriter::ReserveLargeOrRefuse(size_t bytes, bool* wait) {
  *wait = false;
  if (IsLarge(bytes)) {
    const size_t most = most_bytes();
    if (bytes > most)
      return absl::InvalidArgumentError(absl::StrCat("a transaction of ", bytes,
                                                     " bytes of redo; the log takes at most ", most,
                                                     " (half of LogOptions::large_buffer_bytes)"));
    RedoRing* large = channel_->large.load(std::memory_order_relaxed);
    if (large == nullptr) {
      large = new RedoRing(channel_->large_bytes);
      channel_->large.store(large, std::memory_order_release);  // the channel deletes it
    }
    if (shared_->accepting.load(std::memory_order_relaxed) && large->HasRoom(promised_large_ + bytes)) {
      promised_large_ += bytes;
      return absl::OkStatus();
    }
  }
  if (!shared_->accepting.load(std::memory_order_acquire)) {
    if (Status health = shared_->Health(); !health.ok()) return health;
  }
  *wait = true;
  shared_->signal.Urgent();
  return absl::ResourceExhaustedError("the worker's log buffer is full until the log thread has written it");
}

void LogWriter::SleepUntilDurable(uint64_t nanos) {
  if (waiters_.empty()) return;
  const uint64_t now = NowNanos();
  const uint64_t deadline = waiters_.earliest_deadline();
  if (deadline <= now) return;
  shared_->SleepUntilDurable(waiters_.least_epoch(),
                             std::min({nanos, deadline - now, shared_->signal.NanosUntilDue()}));
}

}  // namespace gannet::log
