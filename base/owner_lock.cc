#include "base/owner_lock.h"

#include "base/thread.h"

namespace gannet {
namespace {

// Turns that a visitor waits for the owner: much longer than the owner stays inside, much shorter than a preemption.
constexpr int kVisitorsTurns = 2000;
// Turns after which an owner offers the core to the visitor it waits for.
constexpr int kOwnersTurns = 100;

}  // namespace

void OwnerLock::WaitForVisitor() {
  while (wanted_.load(std::memory_order_acquire) != 0) {
    inside_.store(0, std::memory_order_release);
    for (int turn = 0; wanted_.load(std::memory_order_acquire) != 0; ++turn) {
      if (turn < kOwnersTurns) {
        CpuRelax();
      } else {
        YieldThread();
      }
    }
    inside_.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
}

bool OwnerLock::Enter() {
  uint32_t nobody = 0;
  if (!wanted_.compare_exchange_strong(nobody, 1)) return false;
  const bool ordered = AsymmetricFence::Rarely();
  for (int turn = 0; ordered && turn < kVisitorsTurns; ++turn) {
    if (inside_.load(std::memory_order_acquire) == 0) return true;
    CpuRelax();
  }
  wanted_.store(0, std::memory_order_release);
  return false;
}

}  // namespace gannet
