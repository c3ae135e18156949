// The queues of one node's NIC. Each is a server that handles one item after the other, so its state is the time at
// which it is free next. Times are in picoseconds, because NIC rates have costs of a few nanoseconds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "rdma/sim/nic_profile.h"
#include "rdma/sim/sim_fabric.h"

namespace gannet::rdma::sim {

inline constexpr uint64_t kPicosPerNano = 1000;
constexpr uint64_t ToPicos(uint64_t nanos) {
  return nanos * kPicosPerNano;
}
constexpr uint64_t ToNanos(uint64_t picos) {
  return (picos + kPicosPerNano - 1) / kPicosPerNano;
}

class Engine {
 public:
  // Serves an item that arrives at `ready` and takes `cost`; returns when it is finished.
  uint64_t Take(uint64_t ready, uint64_t cost) {
    free_at_ = std::max(free_at_, ready) + cost;
    busy_ += cost;
    return free_at_;
  }
  uint64_t busy() const { return busy_; }

 private:
  uint64_t free_at_ = 0;
  uint64_t busy_ = 0;
};

class Nic {
 public:
  explicit Nic(const NicProfile& profile);

  // Sends a verb or message whose doorbell rings at `now`, with `bytes` of payload; returns when it has left the NIC.
  uint64_t Send(uint64_t now, uint64_t bytes);
  // Sends to this node itself: no link is used.
  uint64_t SendToSelf(uint64_t now);
  // Receives a packet whose last bit arrives at `now`; returns when it can be processed.
  uint64_t Receive(uint64_t now, uint64_t bytes);
  // Serves a message that was received at `now`; returns when it is in memory.
  uint64_t Serve(uint64_t now) { return ServeFor(now, per_inbound_); }
  // Serves a READ or WRITE at `offset`; returns when it accesses memory.
  uint64_t ServeAccess(uint64_t now, uint64_t offset);
  // Serves an atomic on the word at `offset`, at `not_before` or later.
  uint64_t ServeAtomic(uint64_t now, uint64_t offset, uint64_t not_before);
  // Sends an answer; returns when it has left the NIC.
  uint64_t Answer(uint64_t now, uint64_t bytes);

  const NicStatistics& statistics();
  uint64_t picos_per_served_verb() const { return per_inbound_; }

 private:
  uint64_t OnWire(uint64_t bytes);
  uint64_t ServeFor(uint64_t now, uint64_t cost);

  const NicProfile& profile_;
  const uint64_t per_verb_;
  const uint64_t per_inbound_;
  const uint64_t per_atomic_;
  const uint64_t per_kilobyte_;  // 1024 bytes
  const uint64_t hot_line_;
  Engine send_;
  Engine serve_;
  Engine atomics_;
  Engine out_;
  Engine in_;
  // Atomics on one word wait for each other. NICs lock by some bits of the address (Kalia et al., ATC'16), so atomics
  // on other words may wait, too.
  std::vector<uint64_t> word_free_at_;
  // The time when the last verb at a line came, by the line's hash. Another line that shares the place looks hot at
  // times.
  std::vector<uint64_t> line_touched_at_;
  NicStatistics statistics_;
};

}  // namespace gannet::rdma::sim
