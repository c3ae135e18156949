// The sim fabric: nodes of a Simulation, joined by modelled NICs. The contract of fabric.h holds and no more. See
// nic_profile.h for what time a verb takes, faults.h for what can go wrong.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "rdma/fabric.h"
#include "rdma/heap_parts.h"
#include "rdma/sim/nic_profile.h"
#include "rdma/sim/simulation.h"

namespace gannet::rdma::sim {

struct SimFabricOptions {
  int num_nodes = 1;                                     // at most kMaxSimNodes
  uint64_t bytes_per_node = uint64_t{1} << 30;           // address space; touched pages count
  uint32_t read_only_percent = kDefaultReadOnlyPercent;  // of it is for what others only READ (heap_parts.h)
  NicProfile nic = *FindNicProfile("cx4-100g");
  // How long it takes until a dead node is known to be dead: verbs to it fail then.
  uint64_t detection_nanos = 1'000'000;
};

struct NicStatistics {
  uint64_t verbs_sent = 0;
  uint64_t verbs_served = 0;
  uint64_t bytes_out = 0;
  uint64_t bytes_in = 0;
  uint64_t busy_send_nanos = 0;   // of the engine that takes verbs
  uint64_t busy_serve_nanos = 0;  // of the engine that serves them
  uint64_t busy_out_nanos = 0;    // of the link, each way
  uint64_t busy_in_nanos = 0;
};

class SimFabric : public Fabric {
 public:
  // `simulation` must outlive it.
  static StatusOr<std::unique_ptr<SimFabric>> Create(Simulation* simulation, const SimFabricOptions& options);

  // Node `id` dies on the spot, with its threads and its memory. Attach makes a new one in its place, whose memory is
  // zero.
  virtual void Kill(NodeId id) = 0;
  // It dies when the `n`-th verb or call from now on has left its NIC, and no later one has.
  virtual void KillAfterVerbs(NodeId id, uint64_t n) = 0;
  // Whether it lives; the others may not know yet that it does not.
  virtual bool Runs(NodeId id) const = 0;
  // One direction of a link, until mended.
  virtual void Cut(NodeId from, NodeId to) = 0;
  virtual void Mend(NodeId from, NodeId to) = 0;
  virtual void MendAll() = 0;
  virtual NicStatistics nic_statistics(NodeId id) const = 0;
};

}  // namespace gannet::rdma::sim
