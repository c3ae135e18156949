#include "base/owner_lock.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/runtime.h"
#include "base/thread.h"

namespace gannet {
namespace {

// Turns that a visitor waits for the owner: much longer than the owner stays inside, much shorter than a preemption.
constexpr int kVisitorsTurns = 2000;
// Turns after which an owner offers the core to the visitor it waits for.
constexpr int kOwnersTurns = 100;

}  // namespace

// Until it is set, which is before main, owners use barriers of their own, which is always correct.
const bool OwnerLock::kernel_has_barrier_ = OwnerLock::Register();

bool OwnerLock::Register() {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

bool OwnerLock::VisitorsBarrier() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // Threads of a simulation are fibers of one thread.
  if (!kernel_has_barrier_ || Runtime::Current() != nullptr) return true;
  const auto all_threads = [] { return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0; };
  return all_threads() || (Register() && all_threads());  // a child process may have to register again
}

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
  const bool ordered = VisitorsBarrier();
  for (int turn = 0; ordered && turn < kVisitorsTurns; ++turn) {
    if (inside_.load(std::memory_order_acquire) == 0) return true;
    CpuRelax();
  }
  wanted_.store(0, std::memory_order_release);
  return false;
}

}  // namespace gannet
