// The data of a server process of `gannet serve`: the rows of TPC-C, or the keys of YCSB.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/serve/cluster_file.h"
#include "cluster/bare_server.h"
#include "cluster/call_meter.h"
#include "cluster/config/config.h"
#include "rdma/slab.h"
#include "rdma/statistics.h"
#include "txn/store/statistics.h"

namespace gannet::cli {

class Served {
 public:
  // Answers the calls that wait, then leaves the cluster.
  virtual ~Served() = default;
  // Returns when Patience::stop is set. Unavailable if the other processes hold this one for dead.
  virtual Status ServeUntilStopped() = 0;
  virtual const cluster::BareServer& server() const = 0;
  // Thread-safe.
  virtual rdma::SlabStatistics memory() const = 0;
  // The load that it announced last. Thread-safe.
  virtual rdma::NodeLoad load() const = 0;
  // How its transactions reached other nodes; empty if it runs none. Thread-safe.
  virtual std::vector<txn::TablePaths> paths() const = 0;
  // How its transactions ended; nothing if it runs none. Thread-safe.
  virtual std::optional<txn::TransactionStatistics> transactions() const = 0;
  // The name of a method of the program; empty if it is none.
  virtual std::string MethodName(rdma::MethodId method) const = 0;
  // A description of the load, such as "1 of 3 warehouses loaded in 1.2 s".
  virtual std::string loaded() const = 0;
};

// Waits for the other servers, loads this server's part, and lets clients in. Cancelled if Patience::stop was set;
// ResourceExhausted says which key of the file to change. `meter` may be null and must outlive the result.
// The file has the table [tpcc] for ServeTpcc, and [ycsb] for ServeYcsb.
StatusOr<std::unique_ptr<Served>> ServeTpcc(const ClusterFile& file, int id, const cluster::Patience& patience,
                                            cluster::CallMeter* meter);

StatusOr<std::unique_ptr<Served>> ServeYcsb(const ClusterFile& file, int id, const cluster::Patience& patience,
                                            cluster::CallMeter* meter);

}  // namespace gannet::cli
