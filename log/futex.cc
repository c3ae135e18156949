#include "log/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace gannet::log {

void FutexWait(const std::atomic<uint32_t>& word, uint32_t expected, uint64_t nanos) {
  timespec limit{};
  limit.tv_sec = static_cast<time_t>(nanos / 1'000'000'000);
  limit.tv_nsec = static_cast<long>(nanos % 1'000'000'000);
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, &limit, nullptr, 0);
}

void FutexWakeAll(const std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace gannet::log
