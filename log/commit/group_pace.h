// GroupPace: when the log thread flushes for threads that are blocked until then (blocked_threads.h).
//
// The threads that a flush served and those that blocked during it are those that can block again soon. A flush waits
// for all of them, counted from the end of the last flush, at most as long as that took. So threads that commit one
// transaction after the other share flushes, a single one never waits, and a thread that does something else in between
// costs the others at most one flush. If a wait meets its limit, the next flushes do not wait: 2, then 4, up to 64;
// one that finds all of them without a wait ends this.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gannet::log {

// One thread.
class GroupPace {
 public:
  // `longest_nanos`: limit of a wait.
  explicit GroupPace(uint64_t longest_nanos) : longest_nanos_(longest_nanos) {}

  // True if the last flush served one thread, and no other one has blocked since.
  bool is_lone() const { return at_work_ == 1; }
  // Number of blocked threads with which a flush begins.
  uint32_t expected() const { return skips_ > 0 ? 1 : std::max(at_work_, 1u); }
  // With fewer, but at least one, it begins at this time.
  uint64_t patient_until() const { return patient_until_; }

  // A flush of this duration ends now. `served`: number of blocked threads that waited for it when it began; `came`:
  // those that have blocked since then, for the next one.
  void Flushed(uint32_t served, uint32_t came, uint64_t nanos, uint64_t now_nanos) {
    if (served > 0 && served >= at_work_) {
      next_skips_ = kLeastSkips;
      skips_ = 0;
    } else if (skips_ > 0) {
      --skips_;
    } else if (served > 0) {
      skips_ = next_skips_;
      next_skips_ = std::min(2 * next_skips_, kMostSkips);
    }
    at_work_ = served + came;
    patient_until_ = now_nanos + std::min(nanos, longest_nanos_);
  }

 private:
  static constexpr uint32_t kLeastSkips = 2;
  static constexpr uint32_t kMostSkips = 64;

  const uint64_t longest_nanos_;
  uint32_t at_work_ = 0;
  uint32_t skips_ = 0;                 // number of flushes that do not wait
  uint32_t next_skips_ = kLeastSkips;  // the same, after the next wait that meets its limit
  uint64_t patient_until_ = 0;
};

}  // namespace gannet::log
