// What `gannet ycsb` runs on: a fabric within this process and the bench's cluster on it.
#pragma once

#include <memory>
#include <optional>

#include "cli/ycsb_options.h"
#include "cli/ycsb_result.h"
#include "rdma/base/status.h"
#include "rdma/fabric.h"
#include "ycsb/cluster.h"

namespace gannet::cli {

class YcsbCluster {
 public:
  // Complete() was called on `options`.
  static StatusOr<std::unique_ptr<YcsbCluster>> Open(const YcsbOptions& options);
  ~YcsbCluster();

  ycsb::Cluster& cluster() { return *cluster_; }
  // What is measured begins, or has ended.
  void Watch(bool end);
  // Null for real fabrics.
  const std::optional<SimulationReport>& simulation_report() const { return report_; }

 private:
  YcsbCluster() = default;

  // The cluster goes before the fabric.
  std::unique_ptr<rdma::Fabric> fabric_;
  std::unique_ptr<ycsb::Cluster> cluster_;
  std::optional<SimulationReport> report_;
};

}  // namespace gannet::cli
