// How busy the nodes of a simulated rack were during a measurement.
#pragma once

#include <cstdint>
#include <vector>

#include "rdma/sim/sim_fabric.h"
#include "rdma/sim/simulation.h"

namespace gannet::bench {

// Averages over some nodes, 1 = busy all the time.
struct Usage {
  double cpu = 0;       // of the cores in use: as many as threads for calls, or for clients
  double nic_send = 0;  // the engine that takes verbs from the CPU
  // The engine that serves others' READs, WRITEs and messages, or that of their atomics, if it is busier.
  double nic_serve = 0;
  double link_out = 0;
  double link_in = 0;
};

class RackUsage {
 public:
  // Both must outlive this.
  RackUsage(const rdma::sim::Simulation* simulation, const rdma::sim::SimFabric* fabric)
      : simulation_(simulation), fabric_(fabric) {}

  void Begin() { begin_ = Look(); }
  void End() { end_ = Look(); }
  bool ended() const { return !end_.nodes.empty(); }
  // Usage of the nodes [first, end), with `cores` cores in use each, between Begin and End.
  Usage Of(int first, int end, int cores) const;

 private:
  // Busy times of one node since the simulation began, in nanoseconds.
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
