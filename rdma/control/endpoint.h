// Where a node's control port is.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <string>

#include "rdma/base/status.h"

namespace gannet::rdma::control {

// IPv4 only: RoCE addresses are made of the interface's addresses, and one family keeps them easy to compare.
struct Endpoint {
  sockaddr_in address{};

  std::string host() const;
  uint16_t port() const { return ntohs(address.sin_port); }
  std::string ToString() const;  // host:port
};

// "host:port", or ":port" for the loopback interface. Asks the resolver if the host is a name: may block.
StatusOr<Endpoint> ParseEndpoint(const std::string& text);

// A listening socket that does not block. FailedPrecondition if the port is taken.
StatusOr<int> Listen(const Endpoint& at);
// A socket that is connecting and does not block; when it is writable, ConnectResult tells.
StatusOr<int> StartConnect(const Endpoint& to);
Status ConnectResult(int fd);

}  // namespace gannet::rdma::control
