// BlockedThreads: number of the threads that wait for the log and do nothing else until then. The log thread flushes
// when there are as many as it expects (group_pace.h), and is woken for that once, by the last of them.
//
// The number decides when a flush begins, not whether: it is exact but for a thread that blocks while the batch with
// its epoch is being collected, and while more than kEpochs are open.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/cache_line.h"

namespace gannet::log {

class BlockedThreads {
 public:
  // Called by a thread that blocks until `epoch` is durable, once for each epoch. True: it must wake the log thread.
  bool Add(uint64_t epoch) {
    if (epoch <= collected_.load(std::memory_order_acquire)) return false;
    numbers_[epoch % kEpochs].fetch_add(1, std::memory_order_seq_cst);
    return number() >= flush_at_.load(std::memory_order_seq_cst);
  }
  // Number of threads that wait for epochs that no batch closes yet.
  uint32_t number() const {
    uint32_t sum = 0;
    for (const auto& each : numbers_) sum += each.load(std::memory_order_seq_cst);
    return sum;
  }

  // The rest is for the log thread. It is woken from now on when there are `number` blocked threads.
  void SetFlushAt(uint32_t number) { flush_at_.store(number, std::memory_order_seq_cst); }
  // The batch that is being collected closes the epochs up to `epoch`. Returns the number of threads that wait for it,
  // which do not count any more.
  uint32_t Take(uint64_t epoch) {
    const uint64_t before = collected_.load(std::memory_order_relaxed);
    if (epoch <= before) return 0;
    collected_.store(epoch, std::memory_order_release);
    uint32_t taken = 0;
    for (uint64_t each = std::max(before, epoch - std::min<uint64_t>(epoch, kEpochs)); each < epoch; ++each)
      taken += numbers_[(each + 1) % kEpochs].exchange(0, std::memory_order_seq_cst);
    return taken;
  }

 private:
  static constexpr size_t kEpochs = 4;

  alignas(kLineBytes) std::array<std::atomic<uint32_t>, kEpochs> numbers_{};  // by epoch, modulo kEpochs
  std::atomic<uint32_t> flush_at_{1};
  std::atomic<uint64_t> collected_{0};
};

}  // namespace gannet::log
