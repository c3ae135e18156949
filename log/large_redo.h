// LargeRedo: how much memory the transactions may take that are larger than a writer's ring takes. Each gets a block of
// its own from its reservation until it is written, and all of one node together get at most `limit` bytes. The log
// thread grants them, because only it knows whether the disk has room for as much.
//
//   worker                                   log thread, in every round
//   Take(bytes)   not granted yet: wait        Wanted() -> makes room on disk -> Grant, or Refuse
//   Take(bytes)   granted
//   append                                     writes it, then Written(bytes)
//   or, after an abort, GiveBack(bytes)
//
// So `taken` is never more than `granted`, and the disk has room for all that is granted and not written.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "base/thread.h"

namespace gannet::log {

// One transaction's.
struct LargeBlock {
  std::unique_ptr<std::byte[]> memory;
  size_t taken = 0;  // from LargeRedo, all of which is the block's memory
  size_t used = 0;   // bytes of the encoded transaction, once it is there
};

// Thread-safe.
class LargeRedo {
 public:
  // Before the log is started.
  void SetLimit(uint64_t limit) { limit_ = limit; }
  uint64_t limit() const { return limit_; }

  // `bytes` are at most the limit. Ok and *granted: they are the caller's. Ok and not *granted: to be called again
  // later. Otherwise the disk's error.
  Status Take(uint64_t bytes, bool* granted) {
    std::lock_guard lock(mutex_);
    *granted = taken_ + bytes <= granted_;
    if (*granted) {
      taken_ += bytes;
      asked_ = 0;  // other callers ask again
      return absl::OkStatus();
    }
    if (!refusal_.ok()) {
      asked_ = 0;
      return std::exchange(refusal_, absl::OkStatus());
    }
    if (taken_ + bytes <= limit_) asked_ = std::max(asked_, taken_ + bytes);
    return absl::OkStatus();
  }
  void GiveBack(uint64_t bytes) {
    std::lock_guard lock(mutex_);
    Subtract(bytes);
  }
  // The disk's room for it is used up, too.
  void Written(uint64_t bytes) {
    std::lock_guard lock(mutex_);
    Subtract(bytes);
    granted_ -= bytes;
  }

  uint64_t taken() const {
    std::lock_guard lock(mutex_);
    return taken_;
  }
  // What is taken, or would be after the largest Take that waits. No more is granted from here on.
  uint64_t Wanted() {
    std::lock_guard lock(mutex_);
    const uint64_t wanted = std::max(taken_, asked_);
    granted_ = std::min(granted_, wanted);
    return wanted;
  }
  // The disk has room for so many bytes in all.
  void Grant(uint64_t bytes) {
    std::lock_guard lock(mutex_);
    granted_ = bytes;
    if (bytes >= asked_) refusal_ = absl::OkStatus();
  }
  // It has not. Returns what is taken, beyond which nothing is granted now.
  uint64_t Refuse(const Status& why) {
    std::lock_guard lock(mutex_);
    granted_ = taken_;
    refusal_ = {why.code(), why.message()};  // shared with no other thread
    return taken_;
  }

 private:
  void Subtract(uint64_t bytes) {
    GANNET_CHECK(bytes <= taken_, "%d bytes of large transactions are given back, %d were taken", bytes, taken_);
    taken_ -= bytes;
  }

  uint64_t limit_ = 0;
  mutable Mutex mutex_;  // guards what follows
  uint64_t taken_ = 0;
  uint64_t granted_ = 0;
  uint64_t asked_ = 0;
  Status refusal_;
};

}  // namespace gannet::log
