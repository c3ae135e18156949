// A cluster on simulated nodes, and threads of these nodes with sessions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "rdma/sim/sim_fabric.h"
#include "rdma/sim/simulation.h"
#include "tests/txn/cluster.h"

namespace gannet::txn {

// The thread that creates it is the simulation's observer for as long as this lives.
class SimulatedCluster {
 public:
  SimulatedCluster(int nodes, const rdma::sim::SimulationOptions& simulation, const DatabaseOptions& database,
                   const std::vector<TableOptions>& tables)
      : simulation_(simulation) {
    rdma::sim::SimFabricOptions options;
    options.num_nodes = nodes;
    options.bytes_per_node = uint64_t{64} << 20;
    fabric_ = rdma::sim::SimFabric::Create(&simulation_, options).value();
    cluster_ = std::make_unique<Cluster>(fabric_.get(), database, tables);
  }

  rdma::sim::Simulation& simulation() { return simulation_; }
  rdma::sim::SimFabric& fabric() { return *fabric_; }
  Database& database(int node) { return *cluster_->databases[static_cast<size_t>(node)]; }
  const Table& table(int node, const std::string& name) { return cluster_->table(node, name); }

  // Starts a thread of `node` that calls work(Session&).
  template <class Work>
  Runtime::Thread* Start(int node, Work work) {
    return simulation_.StartOn(static_cast<rdma::NodeId>(node), "work", [this, node, work] {
      auto session = database(node).OpenSession();
      ASSERT_TRUE(session.ok()) << session.status();
      work(**session);
    });
  }
  // Starts a thread as Start does, and waits for its end.
  template <class Work>
  void On(int node, Work work) {
    simulation_.Join(Start(node, work));
  }

  // The database of a dead node stays as it is, like the memory of a process after kill -9.
  void Abandon(int node) { static_cast<void>(cluster_->databases[static_cast<size_t>(node)].release()); }

 private:
  rdma::sim::Simulation simulation_;
  std::unique_ptr<rdma::sim::SimFabric> fabric_;
  std::unique_ptr<Cluster> cluster_;  // destroyed before the fabric
};

}  // namespace gannet::txn
