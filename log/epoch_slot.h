// EpochSlot: shows the log thread the epoch of the oldest commit that one worker has in flight.
//
// What must hold: once the log thread has made the current epoch e + 1 and then found the slot idle or above e, nothing
// of an epoch up to e is appended by this worker any more, and what was appended is visible.
//
//   worker, Enter                     log thread
//     slot.store(e)      (1)            current = e + 1    (3)
//     current.load()     (2)            slot.load()        (4)
//     if it is not e: again with that
//
// All four are seq_cst, so there is one order of them. If (4) does not see (1), then (4) is before (1) in that order,
// so (3) is before (2), and (2) reads e + 1 at least: the commit enters with that instead of e. (The retry makes the
// slot show what the commit uses; a smaller value would be right, too, but hold up the log thread.) Leave stores with
// release, after the transaction was published in the ring, and (4) acquires: whoever sees a commit gone sees its
// bytes.
//
// While commits of this worker are in flight the slot shows the oldest's epoch; a new one only reads the current epoch,
// which is not less, and so is covered by what the slot shows, and is what the slot shows later.
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
    in_flight_.push_back({epoch, 1});
    return epoch;
  }

  void Leave(uint64_t entered) {
    size_t at = 0;
    while (at < in_flight_.size() && in_flight_.at(at).epoch != entered) ++at;
    GANNET_CHECK(at < in_flight_.size(), "no commit of epoch %d is in flight", entered);
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
