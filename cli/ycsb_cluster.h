// What `gannet ycsb` runs on: a fabric within this process, real or simulated, and the bench's cluster on it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cli/ycsb_options.h"
#include "cli/ycsb_result.h"
#include "rdma/base/status.h"
#include "rdma/fabric.h"
#include "rdma/sim/sim_fabric.h"
#include "rdma/sim/simulation.h"
#include "ycsb/cluster.h"

namespace gannet::cli {

class YcsbCluster {
 public:
  // Complete() was called on `options`. If they say so, the calling thread becomes the observer of a simulation for as
  // long as this lives.
  static StatusOr<std::unique_ptr<YcsbCluster>> Open(const YcsbOptions& options);
  ~YcsbCluster();
  YcsbCluster(const YcsbCluster&) = delete;
  YcsbCluster& operator=(const YcsbCluster&) = delete;

  ycsb::Cluster& cluster() { return *cluster_; }

  // What is measured begins, or has ended.
  void Watch(bool end);
  // Between the two; null for real fabrics.
  std::optional<SimulationReport> simulation_report() const;

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

  explicit YcsbCluster(const YcsbOptions& options) : options_(options) {}
  Status OpenFabric();
  Snapshot Look() const;
  int cores_per_node() const;
  // Of nodes [first, end) with so many cores in use each, between the two snapshots.
  Usage UsageOf(int first, int end, int cores) const;

  const YcsbOptions options_;
  // The cluster goes before the fabric, and that before the simulation.
  std::unique_ptr<rdma::sim::Simulation> simulation_;
  rdma::sim::SimFabric* sim_fabric_ = nullptr;
  std::unique_ptr<rdma::Fabric> fabric_;
  std::unique_ptr<ycsb::Cluster> cluster_;
  Snapshot begin_;
  Snapshot end_;
};

}  // namespace gannet::cli
