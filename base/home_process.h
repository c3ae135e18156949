// HomeProcess: tells an object whether it is in the process that made it, or a copy of it in a child that fork made.
// Such a copy has no threads, its locks may be held for good, and its files are the parent's: it must refuse to work,
// and its destructor must leave everything as it is.
//
// Children of vfork, or of clone alone, are not noticed before they call exec.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

#include "base/cache_line.h"

namespace gannet {

namespace internal {
// Number of forks between the start of the program and this process: a child has one more than its parent. Every
// transaction reads it, so it has a cache line without other variables.
struct alignas(kLineBytes) Forks {
  std::atomic<uint32_t> count{0};
};
inline constinit Forks forks;
}  // namespace internal

class HomeProcess {
 public:
  // The home is the calling process. In a simulation, whose threads a child has as well, so is each child of it.
  HomeProcess();
  // True if the caller is in that process. Costs a load and a comparison.
  bool is_here() const { return forks_ == internal::forks.count.load(std::memory_order_relaxed) || forks_ == kEach; }

 private:
  static constexpr uint32_t kEach = std::numeric_limits<uint32_t>::max();
  uint32_t forks_;
};

// A forked child closes the descriptor at its beginning. For descriptors whose last copy matters, as that of a lock.
void CloseInForkedChildren(int descriptor);
// Must be called before the descriptor is closed, in the process that opened it.
void ForgetInForkedChildren(int descriptor);

}  // namespace gannet
