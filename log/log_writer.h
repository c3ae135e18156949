// LogWriter: one worker's way into the log. The order of calls for one commit is
//
//   Reserve -> (locks) -> Enter -> (validates) -> Room, Append -> (installs, unlocks) -> Leave -> Release
//
// where Room and Append have no co_await between them, an abort leaves out what it does not reach, and every Reserve
// that succeeded has its Release. Several commits (coroutines of the worker) may be on their way at once.
//
// No lock, no line that other workers write: a commit touches the ring, the slot's line and the line of the current
// epoch. No call into the kernel but the one, once per group, that wakes the log thread (thread_signal.h).
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
#include "log/durable_waiters.h"
#include "log/epoch_slot.h"
#include "log/large_redo.h"
#include "log/log_shared.h"
#include "log/redo_ring.h"

namespace gannet::log {

// What the log thread sees of a writer. It outlives the writer until it has been emptied.
struct WriterChannel {
  explicit WriterChannel(size_t buffer_bytes) : ring(buffer_bytes) {}

  RedoRing ring;
  // Appended transactions that are larger than ring.largest(). (It does not matter in which order the log has
  // transactions of one epoch; see log_format.md.)
  Mutex large_mutex;
  std::vector<LargeBlock> large;
  std::atomic<bool> has_large{false};  // `large` is not empty; visible like what is in the ring, by `slot`
  SlotWord slot;
  std::atomic<bool> closed{false};
  // Written by the writer only.
  alignas(kLineBytes) std::atomic<uint64_t> transactions{0};
  std::atomic<uint64_t> changes{0};
  std::atomic<uint64_t> payload_bytes{0};
  std::atomic<uint64_t> record_bytes{0};
};

// One worker's. Not thread-safe. The log must outlive it.
class LogWriter {
 public:
  LogWriter(LogShared* shared, std::shared_ptr<WriterChannel> channel)
      : shared_(shared), channel_(std::move(channel)), slot_(&channel_->slot, &shared->current) {}
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;
  // What was appended is still written.
  ~LogWriter();

  // Promises room for one transaction of at most `bytes`, before anything is locked. ResourceExhausted: the buffer is
  // full for the moment (`wait` is set: try again after other coroutines and the log thread had their turn), or the
  // disk is; InvalidArgument: larger than LogOptions::large_buffer_bytes; otherwise the disk's error, or a peer's.
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
  // Most redo bytes of one transaction.
  size_t most_bytes() const { return std::max<size_t>(shared_->large.limit(), channel_->ring.largest()); }
  // The commit has appended, or will not, and has left. `bytes` as in Reserve.
  void Release(size_t bytes) {
    if (IsLarge(bytes)) [[unlikely]] {
      ReleaseLarge(bytes);
    } else {
      promised_ -= bytes;
    }
    if (++released_ % kLookIfDueEvery == 0) shared_->signal.WakeIfDue();
  }

  // The commit's epoch, at least. A commit that finds a later one at another node uses that (and RaiseEpoch); its slot
  // still shows what Enter returned, which is to be given to Leave.
  uint64_t Enter() { return slot_.Enter(); }
  void Leave(uint64_t entered) { slot_.Leave(entered); }

  // Where to encode a transaction of at most `bytes`, as they were reserved.
  std::byte* Room(size_t bytes) {
    if (IsLarge(bytes)) [[unlikely]]
      return LargeRoom(bytes);
    return channel_->ring.Room(bytes);
  }
  // It has been encoded there, with this epoch and so many bytes. Between Enter and Leave.
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
    shared_->NoteDirty(epoch);
  }

  // Resumes `handle` (by the next Poll) when `epoch` is durable, or when `deadline_nanos` (NowNanos) has passed; which
  // of the two, Log::durable_epoch tells.
  void Await(uint64_t epoch, uint64_t deadline_nanos, std::coroutine_handle<> handle) {
    waiters_.Add({epoch, deadline_nanos, handle});
    Want(epoch);
  }
  // `epoch` is to become durable even if nothing is written in it: somebody will ask.
  void Want(uint64_t epoch) { shared_->NoteWanted(epoch); }
  // Hands what has become durable, or late, to `resume(handle)`, which makes it ready and does not run it; returns how
  // many. The worker's poller: cheap when nobody waits.
  template <class Resume>
  size_t Poll(const Resume& resume) {
    if (waiters_.empty()) return 0;
    shared_->signal.WakeIfDue();
    return waiters_.TakeDurable(shared_->durable.load(std::memory_order_acquire), resume) +
           (waiters_.empty() ? 0 : waiters_.TakeLate(NowNanos(), resume));
  }
  // How many wait. A worker in which everything waits may sleep in here instead of spinning, at most `nanos`; it wakes
  // when the first of them may go on.
  size_t waiting() const { return waiters_.size(); }
  void SleepUntilDurable(uint64_t nanos);

 private:
  static constexpr uint32_t kLookIfDueEvery = 8;

  static void Count(std::atomic<uint64_t>* counter, uint64_t more) {
    counter->store(counter->load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
  // The buffer gets full: the log thread shall not wait for its next turn.
  void AskForRoom();
  bool IsLarge(size_t bytes) const { return bytes > channel_->ring.largest(); }
  Status ReserveLargeOrRefuse(size_t bytes, bool* wait);
  Status ReserveLarge(size_t bytes, bool* granted);
  std::byte* LargeRoom(size_t bytes);
  void PublishLarge(size_t bytes);
  void ReleaseLarge(size_t bytes);

  LogShared* const shared_;
  const std::shared_ptr<WriterChannel> channel_;
  EpochSlot slot_;
  size_t promised_ = 0;  // reserved and not released
  // One for each large transaction that is reserved and not released; without memory once that was appended.
  std::vector<LargeBlock> large_;
  LargeBlock* writing_large_ = nullptr;  // of the last Room, until it is appended; null: that is in the ring
  uint32_t released_ = 0;
  DurableWaiters waiters_;
};

}  // namespace gannet::log
