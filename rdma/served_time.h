// How long the threads of a node have served calls: what the load that a node announces is made of (node_load.h).
#pragma once

#include <atomic>
#include <cstdint>

#include "base/cache_line.h"

namespace gannet::rdma {

// Sums since the node was attached. Times are in nanoseconds of the node's clock, virtual in a simulation. The sums
// never decrease.
struct ServedTime {
  uint64_t server_threads = 0;  // their number now
  uint64_t server_nanos = 0;    // that server threads spent on calls
  uint64_t worker_nanos = 0;    // that workers spent on calls, in Node::ServePending
  // The node's link, where the fabric can tell: its speed in each direction, and how long each direction was busy.
  // A speed of 0: not known.
  uint64_t link_bytes_per_second = 0;
  uint64_t link_out_nanos = 0;
  uint64_t link_in_nanos = 0;
  // The engine of the NIC that serves READs, WRITEs and messages of others, where the fabric can tell: the time of one
  // small verb in picoseconds (0: not known), and how long it was busy.
  uint64_t engine_picos_per_verb = 0;
  uint64_t engine_nanos = 0;
};

// Adds up the time of one node's calls. Thread-safe. Server threads and workers count on lines of their own.
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
