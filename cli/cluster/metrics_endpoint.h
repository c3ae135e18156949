// What a server tells Prometheus, over HTTP at /metrics. docs/cluster.md lists the metrics.
#pragma once

#include <memory>
#include <string>

#include "cli/cluster/config.h"
#include "cli/cluster/metered_fabric.h"
#include "cli/cluster/server.h"
#include "rdma/base/status.h"

namespace gannet::cli {

class MetricsEndpoint {
 public:
  // `address` is host:port, or a port of the loopback interface. All others outlive the endpoint.
  static StatusOr<std::unique_ptr<MetricsEndpoint>> Open(const std::string& address, const ClusterConfig& config,
                                                         ClusterServer& server, const CallMeter& meter);
  virtual ~MetricsEndpoint() = default;
  // That it listens on: of interest if the address said 0.
  virtual int port() const = 0;
};

}  // namespace gannet::cli
