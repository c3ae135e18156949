// One server of a cluster: it lends memory, has its part of TPC-C in it, and answers the others.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "cli/cluster/config.h"
#include "cli/cluster/hello.h"
#include "cli/cluster/metered_fabric.h"
#include "cli/cluster/wait.h"
#include "rdma/fabric.h"
#include "rdma/verbs/verbs_fabric.h"
#include "txn/database.h"

namespace gannet::cli {

class ClusterServer {
 public:
  // Waits for the other servers, and loads. `config` must outlive the server. Cancelled if it was told to stop.
  // `meter` may be null; it outlives the server, too.
  static StatusOr<std::unique_ptr<ClusterServer>> Start(const ClusterConfig& config, int id, const Patience& patience,
                                                        CallMeter* meter);
  // Answers what waits, then leaves.
  ~ClusterServer();
  ClusterServer(const ClusterServer&) = delete;
  ClusterServer& operator=(const ClusterServer&) = delete;

  // Returns when it is told to stop. Unavailable if the others hold this node for dead.
  Status ServeUntilStopped(const Patience& patience);

  txn::Database& database() { return *database_; }
  const rdma::Fabric& fabric() const { return *fabric_; }
  const rdma::VerbsFabric* verbs() const { return verbs_; }  // null over shm
  const HelloService& hello() const { return hello_; }
  int warehouses() const { return warehouses_; }
  double load_seconds() const { return load_seconds_; }

 private:
  ClusterServer(const ClusterConfig& config, int id) : config_(config), id_(id), hello_(config.Hash()) {}
  Status Load(const Patience& patience);

  const ClusterConfig& config_;
  const int id_;
  HelloService hello_;
  std::unique_ptr<rdma::Fabric> fabric_;
  const rdma::VerbsFabric* verbs_ = nullptr;  // beneath fabric_
  std::unique_ptr<txn::Database> database_;
  int warehouses_ = 0;
  double load_seconds_ = 0;
};

}  // namespace gannet::cli
