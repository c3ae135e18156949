// All nodes of a TPC-C cluster within this process: the fabric, a database per node, and the tables in each.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "cli/tpcc_options.h"
#include "rdma/base/status.h"
#include "rdma/shm/shm_fabric.h"
#include "tpcc/schema.h"
#include "txn/database.h"

namespace gannet::cli {

class TpccCluster {
 public:
  // Complete() was called on `options`. The tables have what was recovered; the databases serve each other.
  static StatusOr<std::unique_ptr<TpccCluster>> Open(const TpccOptions& options);

  std::span<txn::Database* const> databases() const { return databases_; }
  std::span<const tpcc::Tables> tables() const { return tables_; }

  // Makes what was loaded durable, on all nodes.
  Status Checkpoint();
  // No session may be open. The first error of any node.
  Status Close();

 private:
  TpccCluster() = default;

  // Databases go before the fabric they are attached to.
  std::unique_ptr<rdma::ShmFabric> fabric_;
  std::vector<std::unique_ptr<txn::Database>> owned_;
  std::vector<txn::Database*> databases_;
  std::vector<tpcc::Tables> tables_;
};

}  // namespace gannet::cli
