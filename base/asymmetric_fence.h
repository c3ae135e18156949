// AsymmetricFence: the barriers of two threads, each of which stores a word and then loads the word of the other, if
// one does so very often and the other rarely.
//
//   often    a = 1; AsymmetricFence::Often();    if (b == 0) ...
//   rarely   b = 1; AsymmetricFence::Rarely();   if (a == 0) ...
//
// At least one of the two sees what the other has stored. Ordinarily both would need a full barrier between their two
// steps. Here the rare side uses the kernel's barrier (membarrier), which makes all running threads of the process
// execute one; then only the compiler must keep the two steps of the other side in order. If the store to `a` comes
// before that barrier, the rare side sees it; otherwise the load of `b` comes after the barrier, too, and sees the 1.
// If the kernel does not offer membarrier, both sides execute a barrier.
//
// It orders threads of one process only: not a NIC, and not a process that shares the memory. A load should be an
// acquire and a store a release if it also guards data: ThreadSanitizer knows these, and knows nothing of membarrier.
#pragma once

#include <atomic>

namespace gannet {

class AsymmetricFence {
 public:
  static void Often() {
    if (kernel_has_barrier_) [[likely]] {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
  }
  // Takes microseconds. False: the kernel has refused, and nothing is ordered.
  static bool Rarely();

 private:
  static bool Register();

  static const bool kernel_has_barrier_;
};

}  // namespace gannet
