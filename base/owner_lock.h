// OwnerLock: a lock of data that belongs to one thread, which takes it all the time, and from which others want
// something now and then. The owner pays for it with a store, a load and a store of its own cache line, and no atomic
// operation that locks the bus; the others pay microseconds.
//
//   std::lock_guard lock(owner_lock);                          // the owner
//   if (OwnerLock::Visit visit(owner_lock); visit.entered())   // anybody else
//
// How. The owner says that it is inside, then looks whether somebody wants in; a visitor says that it wants in, then
// looks whether the owner is inside. Each must see what the other said before, so a full barrier stands between the two
// steps of both. The visitor's barrier is the kernel's (membarrier), which makes all running threads of the process
// pass one: then the compiler alone must keep the owner's two steps in order. Where the kernel does not offer it, the
// owner has a barrier of its own.
#pragma once

#include <atomic>
#include <cstdint>

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
    OwnersBarrier();
    if (wanted_.load(std::memory_order_acquire) != 0) [[unlikely]]
      WaitForVisitor();
  }
  void unlock() { inside_.store(0, std::memory_order_release); }

  // For all other threads: one at a time, and only if the owner leaves soon. The operating system may interrupt the
  // owner inside, and a visitor does not wait for that: it comes again later.
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
  static void OwnersBarrier() {
    if (kernel_has_barrier_) [[likely]] {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
  }
  static bool VisitorsBarrier();
  static bool Register();
  void WaitForVisitor();
  bool Enter();

  static const bool kernel_has_barrier_;

  std::atomic<uint32_t> inside_ = 0;
  std::atomic<uint32_t> wanted_ = 0;
};

}  // namespace gannet
