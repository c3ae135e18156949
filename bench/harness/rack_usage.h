// How busy the nodes of a simulated rack were while something was measured.
#pragma once

#include <cstdint>
#include <vector>

#include "rdma/sim/sim_fabric.h"
#include "rdma/sim/simulation.h"

namespace gannet::bench {

// Averages over some nodes, 1 = busy all the time.
struct Usage {
  double cpu = 0;        // of as many cores as the node has threads for calls, or for clients
  double nic_send = 0;   // the engine that takes verbs from the CPU
  double nic_serve = 0;  // the engine that serves others' verbs
  double link_out = 0;
  double link_in = 0;
};

class RackUsage {
 public:
  // Both must outlive it.
  RackUsage(const rdma::sim::Simulation* simulation, const rdma::sim::SimFabric* fabric)
      : simulation_(simulation), fabric_(fabric) {}

  void Begin() { begin_ = Look(); }
  void End() { end_ = Look(); }
  bool ended() const { return !end_.nodes.empty(); }
  // Of nodes [first, end) with so many cores in use each, between the two.
  Usage Of(int first, int end, int cores) const;

 private:
  // Of one node, since the simulation began.
  struct Busy {
    uint64_t cpu = 0;
    rdma::sim::NicStatistics nic;
  };
  struct Snapshot {
    uint64_t now = 0;
    std::vector<Busy> nodes;
  };
  Snapshot Look() const;

  const rdma::sim::Simulation* simulation_;
  const rdma::sim::SimFabric* fabric_;
  Snapshot begin_;
  Snapshot end_;
};

}  // namespace gannet::bench
