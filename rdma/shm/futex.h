// Sleeping until another process changes a word, and waking the sleepers.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

namespace gannet::rdma::shm {

// Returns when the word is not `seen`, after a wake-up, after `timeout_ns`, or spuriously.
inline void FutexWait(std::atomic<uint32_t>* word, uint32_t seen, uint64_t timeout_ns) {
  const timespec timeout{.tv_sec = static_cast<time_t>(timeout_ns / 1'000'000'000),
                         .tv_nsec = static_cast<long>(timeout_ns % 1'000'000'000)};
  syscall(SYS_futex, word, FUTEX_WAIT, seen, &timeout, nullptr, 0);
}

inline void FutexWakeOne(std::atomic<uint32_t>* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

inline void FutexWakeAll(std::atomic<uint32_t>* word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace gannet::rdma::shm
