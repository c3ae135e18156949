// All nodes of a TPC-C cluster within this process: the fabric, a database per node, and the tables in each.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/tpcc/options.h"
#include "cluster/client.h"
#include "cluster/config/config.h"
#include "rdma/fabric.h"
#include "tpcc/schema/schema.h"
#include "txn/database.h"

namespace gannet::cli {

class TpccCluster {
 public:
  // Complete() was called on `options`. The tables have the recovered rows; the databases serve each other.
  // Once *stop (may be null) is true, Open, loads and Checkpoint return Cancelled (txn::DatabaseOptions::stop).
  static StatusOr<std::unique_ptr<TpccCluster>> Open(const TpccOptions& options, const std::atomic<bool>* stop);

  // Makes, for `options` with a cluster file, a client of the processes that have the data. Waits until they have
  // loaded.
  static StatusOr<std::unique_ptr<TpccCluster>> Attach(const TpccOptions& options, const cluster::Patience& patience);

  std::span<txn::Database* const> databases() const { return databases_; }
  std::span<const tpcc::Tables> tables() const { return tables_; }

  // Null if this process has all nodes.
  const cluster::Client* client() const { return client_.get(); }

  // What each node recovered from its directory; empty without directories.
  std::span<const txn::RecoveryReport> recoveries() const { return recoveries_; }

  // Makes the load durable, on all nodes.
  Status Checkpoint();
  // No session may be open. Returns the first error of a node.
  Status Close();
  // Close without a checkpoint: for a load that was not finished.
  void Abandon();

 private:
  TpccCluster() = default;
  Status RecoverWithoutLog(const std::string& directory);

  std::vector<std::shared_ptr<void>> locks_;  // of directories that are only read
  // Databases are destroyed before the fabric to which they are attached.
  std::unique_ptr<rdma::Fabric> fabric_;
  std::vector<std::unique_ptr<txn::Database>> owned_;
  std::unique_ptr<cluster::Client> client_;  // has the fabric and the database of a client
  std::vector<txn::Database*> databases_;
  std::vector<tpcc::Tables> tables_;
  std::vector<txn::RecoveryReport> recoveries_;
};

// The TPC-C workers of a client: each slot has its own numbers (tpcc/schema/keys.h, HISTORY).
int MostThreadsOfClient(const cluster::Config& config);
uint32_t FirstWorkerOfSlot(const cluster::Config& config, int slot);

}  // namespace gannet::cli
