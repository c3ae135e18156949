// ServingMeter: adds up how long the threads of a node serve calls.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/cache_line.h"
#include "rdma/statistics.h"

namespace gannet::rdma {

// Thread-safe. Server threads and workers count on lines of their own.
class ServingMeter {
 public:
  enum class By : uint8_t { kServer, kWorker };

  void Add(By by, uint64_t nanos) {
    (by == By::kServer ? server_ : worker_).nanos.fetch_add(nanos, std::memory_order_relaxed);
  }
  ServedTime Read(uint64_t server_threads) const {
    return {.server_threads = server_threads,
            .server_nanos = server_.nanos.load(std::memory_order_relaxed),
            .worker_nanos = worker_.nanos.load(std::memory_order_relaxed)};
  }

 private:
  struct alignas(kLineBytes) Sum {
    std::atomic<uint64_t> nanos{0};
  };
  Sum server_;
  Sum worker_;
};

}  // namespace gannet::rdma
