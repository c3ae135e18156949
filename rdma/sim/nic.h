// The queues of one node's NIC. Each is a server that takes one thing after the other, so all there is to know is when
// it is free next. Times in picoseconds: what a NIC does in one nanosecond matters.
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
  // Something that takes `cost` comes at `ready`: when is it finished?
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

  // A verb or message that its thread rings for at `now`: when has it left the NIC? `bytes`: payload that it carries.
  uint64_t Send(uint64_t now, uint64_t bytes);
  // The same, to this very node: no link is used.
  uint64_t SendToSelf(uint64_t now);
  // A packet whose last bit is here at `now`: when may it be looked at?
  uint64_t Receive(uint64_t now, uint64_t bytes);
  // When it accesses memory, if it came in at `now`.
  uint64_t Serve(uint64_t now);
  // The same for an atomic of the word at `offset`, `not_before` other accesses.
  uint64_t ServeAtomic(uint64_t now, uint64_t offset, uint64_t not_before);
  // The answer leaves.
  uint64_t Answer(uint64_t now, uint64_t bytes);

  const NicStatistics& statistics();

 private:
  uint64_t OnWire(uint64_t bytes);

  const NicProfile& profile_;
  const uint64_t per_verb_;
  const uint64_t per_inbound_;
  const uint64_t per_atomic_;
  const uint64_t per_kilobyte_;  // 1024 bytes
  Engine send_;
  Engine serve_;
  Engine atomics_;
  Engine out_;
  Engine in_;
  // Same-word atomics wait for each other. NICs lock by some bits of the address (Kalia et al., ATC'16), so
  // others may, too.
  std::vector<uint64_t> word_free_at_;
  NicStatistics statistics_;
};

}  // namespace gannet::rdma::sim
