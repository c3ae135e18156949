// OwnerLock: a lock for data of one thread, the owner, which takes it very often, while other threads need it rarely.
// The owner pays a store, a load and a store of its own cache line, and no atomic operation that locks the bus. Other
// threads pay microseconds.
//
//   std::lock_guard lock(owner_lock);                          // the owner
//   if (OwnerLock::Visit visit(owner_lock); visit.entered())   // any other thread
//
// How. The owner stores that it is inside, then checks whether a visitor wants to enter. A visitor stores that it wants
// to enter, then checks whether the owner is inside. Each must see the other's earlier store, for which they use an
// AsymmetricFence.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/asymmetric_fence.h"
#include "base/cache_line.h"

namespace gannet {

class OwnerLock {
 public:
  OwnerLock() = default;
  OwnerLock(const OwnerLock&) = delete;
  OwnerLock& operator=(const OwnerLock&) = delete;

  // Called by the owner. It must not call anything inside that waits for a visitor.
  void lock() {
    inside_.store(1, std::memory_order_relaxed);
    AsymmetricFence::Often();
    if (wanted_.load(std::memory_order_acquire) != 0) [[unlikely]]
      WaitForVisitor();
  }
  void unlock() { inside_.store(0, std::memory_order_release); }

  // The lock for all other threads, one at a time. A visitor enters only if the owner leaves soon. The operating system
  // may preempt the owner inside; a visitor does not wait for that but tries again later.
  class Visit {
   public:
    explicit Visit(OwnerLock& lock) : lock_(lock), entered_(lock.Enter()) {}
    ~Visit() {
      if (entered_) lock_.wanted_.store(0, std::memory_order_release);
    }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    bool entered() const { return entered_; }

   private:
    OwnerLock& lock_;
    const bool entered_;
  };

 private:
  void WaitForVisitor();
  bool Enter();

  std::atomic<uint32_t> inside_ = 0;
  std::atomic<uint32_t> wanted_ = 0;
};

}  // namespace gannet
