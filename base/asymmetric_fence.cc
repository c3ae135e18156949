#include "base/asymmetric_fence.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/runtime.h"

namespace gannet {

// Until it is set, which is before main, both sides use barriers of their own, which is always correct.
const bool AsymmetricFence::kernel_has_barrier_ = AsymmetricFence::Register();

bool AsymmetricFence::Register() {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

bool AsymmetricFence::Rarely() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  // Threads of a simulation are fibers of one thread.
  if (!kernel_has_barrier_ || Runtime::Current() != nullptr) return true;
  const auto all_threads = [] { return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0; };
  return all_threads() || (Register() && all_threads());  // a child process may have to register again
}

}  // namespace gannet
