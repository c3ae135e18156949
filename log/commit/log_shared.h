// State shared by the workers and the log thread of one node: the epochs, the signal that wakes the log thread, and the
// reason why nothing can be written, if there is one. Written once per epoch, not per commit.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/cache_line.h"
#include "base/status.h"
#include "base/thread.h"
#include "log/commit/blocked_threads.h"
#include "log/commit/large_redo.h"
#include "log/commit/peer_epochs.h"
#include "log/commit/thread_signal.h"

namespace gannet::log {

// Raises *word to `value`; false if it was at least `value` already.
inline bool RaiseTo(std::atomic<uint64_t>* word, uint64_t value) {
  uint64_t seen = word->load(std::memory_order_relaxed);
  while (seen < value) {
    if (word->compare_exchange_weak(seen, value)) return true;
  }
  return false;
}

// Copies `status` so that the copy shares nothing with it; each thread needs its own. Ordinary copies share a
// reference-counted text, and the counting is in a library that ThreadSanitizer does not instrument.
inline Status OwnCopy(const Status& status) {
  return {status.code(), status.message()};
}

struct LogShared {
  // Every commit reads this line; it is written once per epoch.
  alignas(kLineBytes) std::atomic<uint64_t> current{1};  // commits that begin now are of this epoch
  std::atomic<uint64_t> last_dirty{0};                   // newest epoch in which something was appended
  std::atomic<uint64_t> wanted{0};                       // newest epoch that a thread waits for
  std::atomic<bool> accepting{true};                     // health is ok
  std::atomic<bool> stuck{false};                        // Log::is_stuck
  std::atomic<PeerEpochs*> peers{nullptr};               // get last_dirty announced; null: one node

  alignas(kLineBytes) std::atomic<uint64_t> durable{0};
  std::atomic<uint32_t> durable_changes{0};  // +1 with each change of `durable`, to sleep on
  std::atomic<uint32_t> durable_sleepers{0};
  // The least that a flush took lately, while one thread commits alone, one transaction after the other. Otherwise 0.
  std::atomic<uint64_t> lone_flush_nanos{0};

  alignas(kLineBytes) ThreadSignal signal;

  BlockedThreads blocked;

  alignas(kLineBytes) LargeRedo large;

  alignas(kLineBytes) mutable Mutex health_mutex;  // guards `health`
  Status health;

  // Notes that a buffer has a change of `epoch`. The peers are told first. So a thread that finds the epoch here
  // already (acquire) knows that they have been told of this or a later epoch, and may install. True: the caller must
  // call signal.Dirty(), but not while its slot holds the epoch open.
  bool NoteDirty(uint64_t epoch) {
    if (last_dirty.load(std::memory_order_acquire) >= epoch) return false;
    if (PeerEpochs* told = peers.load(std::memory_order_acquire); told != nullptr) told->AnnounceDirty(epoch);
    return RaiseTo(&last_dirty, epoch);
  }
  // Notes that a thread will ask whether `epoch` is durable.
  void NoteWanted(uint64_t epoch) {
    if (last_dirty.load(std::memory_order_relaxed) >= epoch) return;  // it becomes durable anyway
    if (wanted.load(std::memory_order_relaxed) < epoch && RaiseTo(&wanted, epoch)) signal.Dirty();
  }
  // Notes, once for each epoch, that a thread does nothing until `epoch`, which is dirty or wanted, is durable. It does
  // not rely on the thread that made it dirty: that one may lose its core before it wakes the log thread.
  void NoteBlocked(uint64_t epoch) {
    if (blocked.Add(epoch)) signal.Blocked();
  }
  // Called by the log thread.
  void PublishDurable(uint64_t epoch) {
    if (epoch <= durable.load(std::memory_order_relaxed)) return;
    durable.store(epoch, std::memory_order_release);
    durable_changes.fetch_add(1, std::memory_order_seq_cst);
    if (durable_sleepers.load(std::memory_order_seq_cst) != 0) FutexWakeAll(durable_changes);
  }
  // Sleeps until `epoch` is durable, at most `nanos`. A sleeper that the log thread did not count read durable_changes
  // before it was incremented, so the kernel does not let it sleep.
  void SleepUntilDurable(uint64_t epoch, uint64_t nanos) {
    const uint32_t seen = durable_changes.load(std::memory_order_seq_cst);
    if (durable.load(std::memory_order_acquire) >= epoch) return;
    durable_sleepers.fetch_add(1, std::memory_order_seq_cst);
    FutexWait(durable_changes, seen, nanos);
    durable_sleepers.fetch_sub(1, std::memory_order_seq_cst);
  }

  Status Health() const {
    std::lock_guard lock(health_mutex);
    return OwnCopy(health);
  }
  void SetHealth(const Status& status) {
    std::lock_guard lock(health_mutex);
    health = OwnCopy(status);
    accepting.store(status.ok(), std::memory_order_release);
  }
};

}  // namespace gannet::log
