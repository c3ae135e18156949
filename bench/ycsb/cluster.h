// The cluster under the YCSB bench: a fabric within this process, real or simulated, and the bench's cluster on it; or
// a client machine whose servers are other processes.
#pragma once

#include <memory>
#include <optional>

#include "base/status.h"
#include "bench/harness/rack_usage.h"
#include "bench/ycsb/options.h"
#include "bench/ycsb/result.h"
#include "cluster/bare_client.h"
#include "cluster/config/config.h"
#include "rdma/fabric.h"
#include "rdma/sim/sim_fabric.h"
#include "rdma/sim/simulation.h"
#include "ycsb/cluster.h"

namespace gannet::bench {

class YcsbCluster {
 public:
  // SetDefaults() was called on `options`. If they choose a simulation, the calling thread becomes its observer for as
  // long as this lives.
  static StatusOr<std::unique_ptr<YcsbCluster>> Open(const YcsbOptions& options);
  // `options` has a cluster_config: a client of its servers. Waits until they have loaded.
  static StatusOr<std::unique_ptr<YcsbCluster>> Attach(const YcsbOptions& options, const cluster::Patience& patience);
  ~YcsbCluster();
  YcsbCluster(const YcsbCluster&) = delete;
  YcsbCluster& operator=(const YcsbCluster&) = delete;

  ycsb::Cluster& cluster() { return *cluster_; }
  // Null if the servers are in this process.
  const cluster::BareClient* client() const { return client_.get(); }

  // Called when the measurement begins, and when it has ended.
  void Watch(bool end);
  // Covers the time between these two calls; null for real fabrics.
  std::optional<SimulationReport> simulation_report() const;

 private:
  explicit YcsbCluster(const YcsbOptions& options) : options_(options) {}
  Status OpenFabric();
  int cores_per_node() const;

  const YcsbOptions options_;
  // The cluster is destroyed before the fabric, and the fabrics before the simulation.
  std::unique_ptr<rdma::sim::Simulation> simulation_;
  std::unique_ptr<rdma::Fabric> inner_fabric_;  // behind fabric_, with version_reads
  std::unique_ptr<rdma::Fabric> fabric_;
  std::unique_ptr<cluster::BareClient> client_;  // in place of fabric_
  std::unique_ptr<ycsb::Cluster> cluster_;
  std::optional<RackUsage> usage_;  // of a simulation
};

}  // namespace gannet::bench
