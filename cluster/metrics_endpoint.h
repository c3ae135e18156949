// The metrics of a server, for Prometheus: over HTTP at /metrics. docs/cluster.md lists them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "cluster/bare_server.h"
#include "cluster/call_meter.h"
#include "rdma/slab.h"
#include "rdma/statistics.h"
#include "txn/store/statistics.h"

namespace gannet::cluster {

// Returns host:port. `text` may be a port alone, then of the loopback interface. InvalidArgument if it is neither.
StatusOr<std::string> ParseMetricsAddress(const std::string& text);

// The sources of the metrics of a server's node. Any thread may call these.
struct MetricsSources {
  std::function<rdma::SlabStatistics()> memory;         // what its registered memory holds
  std::function<rdma::NodeLoad()> load;                 // the load that it announced last
  std::function<std::vector<txn::TablePaths>()> paths;  // of accesses to other nodes; null: it has no transactions
  // How its transactions ended; null: it has none.
  std::function<txn::TransactionStatistics()> transactions = {};
  // The name of a method of the program, such as "get"; empty: it is unknown. Null: the program has none.
  std::function<std::string(rdma::MethodId)> program_method = {};
};

// Thread-safe. It answers on a thread of its own.
class MetricsEndpoint {
 public:
  // Listens at `address`, host:port; there are no metrics yet. Unavailable if it cannot listen there.
  static StatusOr<std::unique_ptr<MetricsEndpoint>> Listen(const std::string& address);
  virtual ~MetricsEndpoint() = default;
  // Answers with the server's metrics from now on. Call it once. `server`, `meter` and what `sources` use must outlive
  // the endpoint.
  virtual void Show(const BareServer& server, MetricsSources sources, const CallMeter& meter) = 0;
  // The port at which it listens. Useful if the address had port 0.
  virtual int port() const = 0;
};

}  // namespace gannet::cluster
