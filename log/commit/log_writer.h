// LogWriter: one worker's access to the log. The order of calls for one commit is
//
//   Reserve -> (locks) -> Enter -> (validates) -> Room, Append -> (installs, unlocks) -> Leave -> Release
//
// There is no co_await between Room and Append. An abort skips the calls that it does not reach, but every successful
// Reserve needs its Release. Several commits (coroutines of the worker) may be in progress at once.
//
// A commit takes no lock and touches no line that other workers write: only the ring, the slot's line and the line of
// the current epoch. The only system call is the one, once per group, that wakes the log thread (thread_signal.h).
#pragma once

#include <algorithm>
#include <atomic>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/status.h"
#include "log/commit/adaptive_spin.h"
#include "log/commit/durable_waiters.h"
#include "log/commit/epoch_slot.h"
#include "log/commit/large_redo.h"
#include "log/commit/log_shared.h"
#include "log/commit/redo_ring.h"

namespace gannet::log {

// The part of a writer that the log thread reads. It outlives the writer until it is empty.
struct WriterChannel {
  explicit WriterChannel(size_t buffer_bytes) : ring(buffer_bytes) {}

  RedoRing ring;
  // Appended transactions that are larger than ring.largest(). (The order of the transactions of one epoch in the log
  // does not matter; see log_format.md.)
  Mutex large_mutex;
  std::vector<LargeBlock> large;
  std::atomic<bool> has_large{false};  // `large` is not empty; `slot` makes it visible, as for the ring
  SlotWord slot;
  std::atomic<bool> closed{false};
  // Written by the writer only.
  alignas(kLineBytes) std::atomic<uint64_t> transactions{0};
  std::atomic<uint64_t> changes{0};
  std::atomic<uint64_t> payload_bytes{0};
  std::atomic<uint64_t> record_bytes{0};
};

// Belongs to one worker. Not thread-safe. The log must outlive it.
class LogWriter {
 public:
  LogWriter(LogShared* shared, std::shared_ptr<WriterChannel> channel)
      : shared_(shared), channel_(std::move(channel)), slot_(&channel_->slot, &shared->current) {}
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;
  // Appended transactions are still written.
  ~LogWriter();

  // Promises room for one transaction of at most `bytes`, before anything is locked. ResourceExhausted: the buffer is
  // full for the moment (*wait is set: try again after other coroutines and the log thread have run), or the disk is
  // full. InvalidArgument: larger than LogOptions::large_buffer_bytes. Other errors: those of the disk or of a peer.
  Status Reserve(size_t bytes, bool* wait) {
    RedoRing& ring = channel_->ring;
    const size_t promised = promised_ + bytes;
    if (shared_->accepting.load(std::memory_order_relaxed) && bytes <= ring.largest() && ring.HasRoom(promised))
        [[likely]] {
      promised_ = promised;
      ring.PrefetchRoom(bytes);
      *wait = false;
      if (ring.GetsFull()) [[unlikely]]
        AskForRoom();
      return absl::OkStatus();
    }
    return ReserveLargeOrRefuse(bytes, wait);
  }
  // Largest number of redo bytes of one transaction.
  size_t most_bytes() const { return std::max<size_t>(shared_->large.limit(), channel_->ring.largest()); }
  // Called after Leave, whether or not the commit has appended. `bytes` as in Reserve.
  void Release(size_t bytes) {
    if (IsLarge(bytes)) [[unlikely]] {
      ReleaseLarge(bytes);
    } else {
      GANNET_CHECK(bytes <= promised_, "%d bytes are released, %d reserved", bytes, promised_);
      promised_ -= bytes;
    }
  }

  // Returns a lower bound of the commit's epoch. A commit that finds a later epoch at another node uses that one (and
  // RaiseEpoch). Its slot still shows the epoch that Enter returned; Leave needs that epoch.
  uint64_t Enter() { return slot_.Enter(); }
  void Leave(uint64_t entered) {
    slot_.Leave(entered);
    if (made_dirty_) [[unlikely]]
      WakeLog();
  }

  // Returns the place to encode a transaction of at most `bytes`, as reserved.
  std::byte* Room(size_t bytes) {
    if (IsLarge(bytes)) [[unlikely]]
      return LargeRoom(bytes);
    return channel_->ring.Room(bytes);
  }
  // Appends the transaction encoded there, of this epoch and size. Called between Enter and Leave.
  void Append(uint64_t epoch, size_t bytes, uint32_t changes, size_t payload_bytes) {
    if (writing_large_ != nullptr) [[unlikely]] {
      PublishLarge(bytes);
    } else {
      GANNET_CHECK(bytes <= promised_ && bytes % 8 == 0, "%d bytes appended, %d reserved", bytes, promised_);
      channel_->ring.Publish(bytes);
    }
    Count(&channel_->transactions, 1);
    Count(&channel_->changes, changes);
    Count(&channel_->payload_bytes, payload_bytes);
    Count(&channel_->record_bytes, bytes);
    if (shared_->NoteDirty(epoch)) [[unlikely]]
      made_dirty_ = true;
  }

  // Has Poll resume `handle` when `epoch` is durable or `deadline_nanos` (NowNanos) has passed. Log::durable_epoch
  // tells which of the two happened.
  void Await(uint64_t epoch, uint64_t deadline_nanos, std::coroutine_handle<> handle) {
    waiters_.Add({epoch, deadline_nanos, handle});
    Want(epoch);
  }
  // Makes `epoch` become durable even if nothing is written in it, because a caller will wait for it.
  void Want(uint64_t epoch) { shared_->NoteWanted(epoch); }
  // Calls `resume(handle)` for each waiter whose epoch is durable or whose deadline has passed, and returns their
  // number. `resume` makes the handle ready and does not run it. The worker polls this; it is cheap when there is no
  // waiter.
  template <class Resume>
  size_t Poll(const Resume& resume) {
    if (waiters_.empty()) return 0;
    return waiters_.TakeDurable(shared_->durable.load(std::memory_order_acquire), resume) +
           (waiters_.empty() ? 0 : waiters_.TakeLate(NowNanos(), resume));
  }
  // Tells the log thread that the worker has nothing to do but to wait for its waiters' epochs.
  void NoteBlocked();
  // Number of waiters. A worker whose coroutines all wait may call SleepUntilDurable instead of spinning: it sleeps at
  // most `nanos` and wakes when the first waiter can continue.
  size_t waiting() const { return waiters_.size(); }
  void SleepUntilDurable(uint64_t nanos);

 private:
  static void Count(std::atomic<uint64_t>* counter, uint64_t more) {
    counter->store(counter->load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
  // Called when the buffer is getting full: tells the log thread not to wait for its next round.
  void AskForRoom();
  void WakeLog();
  bool IsLarge(size_t bytes) const { return bytes > channel_->ring.largest(); }
  Status ReserveLargeOrRefuse(size_t bytes, bool* wait);
  Status ReserveLarge(size_t bytes, bool* granted);
  std::byte* LargeRoom(size_t bytes);
  void PublishLarge(size_t bytes);
  void ReleaseLarge(size_t bytes);

  LogShared* const shared_;
  const std::shared_ptr<WriterChannel> channel_;
  EpochSlot slot_;
  size_t promised_ = 0;         // reserved and not released
  bool made_dirty_ = false;     // an epoch, and the log thread is not woken yet
  uint64_t blocked_until_ = 0;  // the last epoch of NoteBlocked
  // The time when it may become durable, if this is the only thread that is blocked, and is to spin then; 0: it is not.
  uint64_t spin_at_ = 0;
  AdaptiveSpin spin_;
  // One for each large transaction that is reserved and not released; its memory is gone once it is appended.
  std::vector<LargeBlock> large_;
  // Block of the last Room, until it is appended; null: the last Room is in the ring.
  LargeBlock* writing_large_ = nullptr;
  DurableWaiters waiters_;
};

}  // namespace gannet::log
