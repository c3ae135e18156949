// EpochSlot: shows the log thread the epoch of the oldest commit that one worker has in flight.
//
// The invariant: once the log thread has set the current epoch to e + 1 and then found the slot idle or above e, this
// worker appends nothing more of an epoch up to e, and all that it has appended is visible.
//
//   worker, Enter                     log thread
//     slot.store(e)      (1)            current = e + 1    (3)
//     current.load()     (2)            slot.load()        (4)
//     if it is not e: again with that
//
// All four are seq_cst, so they have a total order. If (4) does not see (1), then (4) is before (1) in that order. So
// (3) is before (2), and (2) reads at least e + 1: the commit enters with that epoch instead of e. (The retry makes the
// slot show the epoch that the commit uses. A smaller value would also be correct, but would delay the log thread.)
// Leave stores with release, after the transaction was published in the ring, and (4) acquires: if the log thread sees
// that a commit has left, it sees the commit's bytes.
//
// While commits of this worker are in flight, the slot shows the epoch of the oldest. A new commit then only reads the
// current epoch. That is at least the epoch in the slot, so the slot covers the new commit, too; the slot shows the new
// commit's epoch later, when the older ones have left.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/cache_line.h"
#include "base/check.h"
#include "base/ring_queue.h"

namespace gannet::log {

// The word that the log thread reads.
struct alignas(kLineBytes) SlotWord {
  static constexpr uint64_t kIdle = UINT64_MAX;
  std::atomic<uint64_t> epoch{kIdle};
};

// The worker's side. Not thread-safe.
class EpochSlot {
 public:
  EpochSlot(SlotWord* word, const std::atomic<uint64_t>* current) : word_(word), current_(current) {}

  uint64_t Enter() {
    uint64_t epoch = current_->load(std::memory_order_seq_cst);
    if (in_flight_.empty()) {
      uint64_t shown;
      do {
        shown = epoch;
        PreemptionPoint();
        word_->epoch.store(shown, std::memory_order_seq_cst);
        epoch = current_->load(std::memory_order_seq_cst);
      } while (epoch != shown);
    } else if (Commits& newest = in_flight_.at(in_flight_.size() - 1); newest.epoch == epoch) {
      ++newest.count;
      return epoch;
    }
    // The slot shows the epoch of the first, which must be the oldest.
    GANNET_CHECK(in_flight_.empty() || in_flight_.at(in_flight_.size() - 1).epoch < epoch,
                 "a commit enters epoch %d after epoch %d", epoch, in_flight_.at(in_flight_.size() - 1).epoch);
    in_flight_.push_back({epoch, 1});
    return epoch;
  }

  void Leave(uint64_t entered) {
    size_t at = 0;
    while (at < in_flight_.size() && in_flight_.at(at).epoch != entered) ++at;
    GANNET_CHECK(at < in_flight_.size() && in_flight_.at(at).count > 0, "no commit of epoch %d is in flight", entered);
    // Otherwise the log thread may have closed an epoch in which commits of this worker were in flight.
    const uint64_t shown = word_->epoch.load(std::memory_order_relaxed);
    GANNET_CHECK(shown == in_flight_.front().epoch, "the slot shows epoch %d; the oldest commit is of %d", shown,
                 in_flight_.front().epoch);
    --in_flight_.at(at).count;
    if (at != 0 || in_flight_.front().count != 0) return;
    while (!in_flight_.empty() && in_flight_.front().count == 0) in_flight_.pop_front();
    word_->epoch.store(in_flight_.empty() ? SlotWord::kIdle : in_flight_.front().epoch, std::memory_order_release);
  }

 private:
  struct Commits {
    uint64_t epoch = 0;
    uint64_t count = 0;
  };

  SlotWord* const word_;
  const std::atomic<uint64_t>* const current_;
  RingQueue<Commits> in_flight_;  // ascending epochs, one or two of them
};

}  // namespace gannet::log
