// LargeRedo: the memory of transactions that are too large for a writer's ring. Each has a block of its own from its
// reservation until it is written, and all of a node together get at most `limit` bytes. The log thread grants them,
// because only it knows whether the disk has enough room.
//
//   worker                                   log thread, in every round
//   Take(bytes)   not granted yet: wait        Wanted() -> makes room on disk -> Grant, or Refuse
//   Take(bytes)   granted
//   append                                     writes it, then Written(bytes)
//   or, after an abort, GiveBack(bytes)
//
// So `taken` never exceeds `granted`, and the disk has room for all that is granted and not written.
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

// The block of one transaction.
struct LargeBlock {
  std::unique_ptr<std::byte[]> memory;
  size_t taken = 0;  // bytes taken from LargeRedo: the size of `memory`
  size_t used = 0;   // bytes of the encoded transaction, once it is there
};

// Thread-safe.
class LargeRedo {
 public:
  // Call this before the log is started.
  void SetLimit(uint64_t limit) { limit_ = limit; }
  uint64_t limit() const { return limit_; }

  // Takes `bytes`, at most the limit. Ok and *granted: the caller has them. Ok and not *granted: call again later.
  // Otherwise the disk's error.
  Status Take(uint64_t bytes, bool* granted) {
    std::lock_guard lock(mutex_);
    *granted = taken_ + bytes <= granted_;
    if (*granted) {
      taken_ += bytes;
      asked_ = 0;  // other callers ask again
      CheckGrant();
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
  // Returns the bytes of a written transaction. Its room on the disk is used up, too.
  void Written(uint64_t bytes) {
    std::lock_guard lock(mutex_);
    Subtract(bytes);
    granted_ -= bytes;
    CheckGrant();
  }

  uint64_t taken() const {
    std::lock_guard lock(mutex_);
    return taken_;
  }
  // Returns the bytes that are taken, or that would be after the largest waiting Take. Lowers the grant to this value.
  uint64_t Wanted() {
    std::lock_guard lock(mutex_);
    const uint64_t wanted = std::max(taken_, asked_);
    granted_ = std::min(granted_, wanted);
    return wanted;
  }
  // Tells that the disk has room for `bytes` in all.
  void Grant(uint64_t bytes) {
    std::lock_guard lock(mutex_);
    granted_ = bytes;
    CheckGrant();
    if (bytes >= asked_) refusal_ = absl::OkStatus();
  }
  // Tells that it has no room. Returns the bytes that are taken, beyond which nothing is granted now.
  uint64_t Refuse(const Status& why) {
    std::lock_guard lock(mutex_);
    granted_ = taken_;
    refusal_ = {why.code(), why.message()};  // shared with no other thread
    return taken_;
  }

 private:
  // Otherwise a transaction could pass its commit point without room on the disk.
  void CheckGrant() const {
    GANNET_CHECK(taken_ <= granted_ && granted_ <= limit_,
                 "large transactions have taken %d bytes of %d granted, limit %d", taken_, granted_, limit_);
  }
  void Subtract(uint64_t bytes) {
    GANNET_CHECK(bytes <= taken_, "%d bytes of large transactions are given back, %d were taken", bytes, taken_);
    taken_ -= bytes;
  }

  uint64_t limit_ = 0;
  mutable Mutex mutex_;  // guards the members below
  uint64_t taken_ = 0;
  uint64_t granted_ = 0;
  uint64_t asked_ = 0;
  Status refusal_;
};

}  // namespace gannet::log
