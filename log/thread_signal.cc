#include "log/thread_signal.h"

#include <sched.h>

namespace gannet::log {

void ThreadSignal::WakeIfDueNow() {
  const uint64_t due = due_.load(std::memory_order_relaxed);
  const uint64_t now = NowNanos();
  if (now < due) return;
  const int cpu = due_cpu_.load(std::memory_order_relaxed);
  if (cpu >= 0 && now - due < kFromElsewhereNanos && sched_getcpu() != cpu) return;
  if (due_.exchange(kNeverDue, std::memory_order_seq_cst) == kNeverDue) return;  // another thread was first
  if (state_.load(std::memory_order_seq_cst) != kAwake) Wake();
}

}  // namespace gannet::log
