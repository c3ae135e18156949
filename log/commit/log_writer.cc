#include "log/commit/log_writer.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gannet::log {
namespace {

// The only thread that is blocked begins to spin so long before the flush can end, if that takes as long as the
// shortest of the last ones, and spins so long in all.
constexpr uint64_t kWakeBeforeNanos = 120'000;
constexpr uint64_t kSpinOnFlushNanos = 300'000;

}  // namespace

LogWriter::~LogWriter() {
  channel_->slot.epoch.store(SlotWord::kIdle, std::memory_order_release);
  if (made_dirty_) WakeLog();
  channel_->closed.store(true, std::memory_order_release);
}

void LogWriter::AskForRoom() {
  channel_->ring.LookAtTail();
  if (channel_->ring.GetsFull()) shared_->signal.Urgent();
}

void LogWriter::WakeLog() {
  made_dirty_ = false;
  shared_->signal.Dirty();
}

void LogWriter::NoteBlocked() {
  if (waiters_.empty() || waiters_.least_epoch() <= blocked_until_) return;
  blocked_until_ = waiters_.least_epoch();
  const uint64_t flush = shared_->lone_flush_nanos.load(std::memory_order_relaxed);
  spin_at_ = flush == 0 ? 0 : NowNanos() + flush - std::min(flush, kWakeBeforeNanos);
  shared_->NoteBlocked(blocked_until_);
}

Status LogWriter::ReserveLargeOrRefuse(size_t bytes, bool* wait) {
  *wait = false;
  if (IsLarge(bytes)) {
    const size_t most = most_bytes();
    if (bytes > most)
      return absl::InvalidArgumentError(absl::StrCat("a transaction of ", bytes,
                                                     " bytes of redo; the log takes at most ", most,
                                                     " (LogOptions::large_buffer_bytes)"));
    if (shared_->accepting.load(std::memory_order_relaxed)) {
      bool granted = false;
      Status reserved = ReserveLarge(bytes, &granted);
      if (granted || !reserved.ok()) return reserved;
    }
  }
  if (!shared_->accepting.load(std::memory_order_acquire)) {
    if (Status health = shared_->Health(); !health.ok()) return health;
  }
  *wait = true;
  shared_->signal.Urgent();
  return absl::ResourceExhaustedError("the worker's log buffer is full until the log thread has written it");
}

Status LogWriter::ReserveLarge(size_t bytes, bool* granted) {
  GANNET_RETURN_IF_ERROR(shared_->large.Take(bytes, granted));
  if (!*granted) return absl::OkStatus();
  // A commit in progress must not fail for lack of memory.
  LargeBlock block{.memory = std::unique_ptr<std::byte[]>(new (std::nothrow) std::byte[bytes]), .taken = bytes};
  if (block.memory == nullptr) {
    shared_->large.GiveBack(bytes);
    *granted = false;
    return absl::ResourceExhaustedError(absl::StrCat("no memory for a transaction of ", bytes, " bytes of redo"));
  }
  large_.push_back(std::move(block));
  return absl::OkStatus();
}

// Reservations of the same size are interchangeable.
std::byte* LogWriter::LargeRoom(size_t bytes) {
  const auto block = std::find_if(large_.begin(), large_.end(), [bytes](const LargeBlock& each) {
    return each.taken == bytes && each.memory != nullptr;
  });
  GANNET_CHECK(block != large_.end(), "no block of %d bytes is reserved", bytes);
  writing_large_ = &*block;
  return block->memory.get();
}

void LogWriter::PublishLarge(size_t bytes) {
  LargeBlock& block = *std::exchange(writing_large_, nullptr);
  GANNET_CHECK(bytes <= block.taken && bytes % 8 == 0, "%d bytes appended, %d reserved", bytes, block.taken);
  std::lock_guard lock(channel_->large_mutex);
  channel_->large.push_back({.memory = std::move(block.memory), .taken = block.taken, .used = bytes});
  channel_->has_large.store(true, std::memory_order_relaxed);
}

// Appended blocks are given back by the log thread.
void LogWriter::ReleaseLarge(size_t bytes) {
  const auto of_size = [bytes](const LargeBlock& block) { return block.taken == bytes; };
  auto block = std::find_if(large_.begin(), large_.end(),
                            [&](const LargeBlock& each) { return of_size(each) && each.memory == nullptr; });
  if (block == large_.end()) {
    block = std::find_if(large_.begin(), large_.end(), of_size);
    GANNET_CHECK(block != large_.end(), "no block of %d bytes is reserved", bytes);
    shared_->large.GiveBack(bytes);
  }
  large_.erase(block);
}

void LogWriter::SleepUntilDurable(uint64_t nanos) {
  if (waiters_.empty()) return;
  const uint64_t now = NowNanos();
  const uint64_t deadline = waiters_.earliest_deadline();
  if (deadline <= now) return;
  NoteBlocked();
  const uint64_t epoch = waiters_.least_epoch();
  if (spin_at_ != 0 && spin_at_ <= now) {
    const auto is_durable = [&] { return shared_->durable.load(std::memory_order_acquire) >= epoch; };
    if (spin_.Until(std::exchange(spin_at_, 0) + kSpinOnFlushNanos, is_durable)) return;
  }
  const uint64_t at_most = spin_at_ == 0 ? nanos : std::min(nanos, spin_at_ - std::min(now, spin_at_));
  shared_->SleepUntilDurable(epoch, std::min(at_most, deadline - now));
}

}  // namespace gannet::log
