// SimRack: the nodes of a simulated rack on which an experiment opens its databases.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "rdma/sim/sim_fabric.h"
#include "rdma/sim/simulation.h"
#include "txn/database.h"

namespace gannet::experiments {

struct SimRackOptions {
  int nodes = 1;
  int cores = 1;                                // of each
  uint64_t bytes_per_node = uint64_t{2} << 30;  // address space
  std::string nic;                              // of NicProfiles()
  rdma::sim::Serving serving = rdma::sim::Serving::kShared;
  bool spread = true;  // of round trips (rdma/sim/spread.h)
  uint64_t seed = 1;
};

// The thread that creates it is the simulation's observer for as long as this lives.
class SimRack {
 public:
  static StatusOr<std::unique_ptr<SimRack>> Create(const SimRackOptions& options);

  rdma::sim::Simulation& simulation() { return simulation_; }
  rdma::sim::SimFabric& fabric() { return *fabric_; }

  // Runs `work` on a thread of each node of [first, end) at the same time, because nodes wait for each other. Returns
  // an error of one of them, if there is one.
  Status OnNodes(int first, int end, const std::function<Status(int node)>& work);
  // Opens the database of a node with one table, and starts it. On a thread of that node.
  StatusOr<std::unique_ptr<txn::Database>> Open(int node, const txn::DatabaseOptions& options,
                                                const txn::TableOptions& table);

 private:
  explicit SimRack(const rdma::sim::SimulationOptions& options) : simulation_(options) {}

  rdma::sim::Simulation simulation_;
  std::unique_ptr<rdma::sim::SimFabric> fabric_;  // destroyed before the simulation
};

}  // namespace gannet::experiments
