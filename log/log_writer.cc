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
  if (channel_->ring.used() > channel_->ring.largest()) shared_->signal.Urgent();
}

Status LogWriter::Refuse(size_t bytes, bool* wait) {
  *wait = false;
  const RedoRing& ring = channel_->ring;
  if (bytes > ring.largest())
    return absl::InvalidArgumentError(absl::StrCat("a transaction of ", bytes, " bytes of redo; the log takes at most ",
                                                   ring.largest(), " (half of LogOptions::buffer_bytes)"));
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
  shared_->SleepUntilDurable(waiters_.least_epoch(), std::min(nanos, deadline - now));
}

}  // namespace gannet::log
