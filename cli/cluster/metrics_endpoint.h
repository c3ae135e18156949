// What a server tells Prometheus, over HTTP at /metrics. docs/cluster.md lists the metrics.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "cli/cluster/config.h"
#include "cli/cluster/metered_fabric.h"
#include "cli/cluster/server.h"

namespace gannet::cli {

// host:port, as `text` says it, or of a port alone the loopback interface. InvalidArgument if it is neither.
StatusOr<std::string> ParseMetricsAddress(const std::string& text);

class MetricsEndpoint {
 public:
  // Takes the port; there are no metrics yet. `address` is host:port.
  static StatusOr<std::unique_ptr<MetricsEndpoint>> Listen(const std::string& address);
  virtual ~MetricsEndpoint() = default;
  // Answers with the server's metrics from now on. Once; all three outlive the endpoint.
  virtual void Show(const ClusterConfig& config, ClusterServer& server, const CallMeter& meter) = 0;
  // The port that it listens on: of interest if the address said 0.
  virtual int port() const = 0;
};

}  // namespace gannet::cli
