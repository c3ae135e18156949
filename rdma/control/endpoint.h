// Address of a node's control port.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "base/status.h"

namespace gannet::rdma::control {

// An IPv4 or IPv6 address, and a port.
struct Endpoint {
  sockaddr_storage address{};

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&address); }
  socklen_t size() const { return address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in); }
  std::string host() const;
  uint16_t port() const;
  Endpoint WithPort(uint16_t port) const;
  std::string ToString() const;  // "host:port", "[host]:port"
};

// "host:port", "[IPv6 address]:port", or ":port" for the loopback interface. Asks the resolver if the host is a name:
// may block. A name that has addresses of both families means the IPv4 one.
StatusOr<Endpoint> ParseEndpoint(const std::string& text);
// Does what ParseEndpoint does without the resolver, for strings from a peer.
StatusOr<Endpoint> ParseNumericEndpoint(const std::string& text);
// A host alone; the port is 0.
StatusOr<Endpoint> ParseHost(const std::string& host);

// Address of this machine on its route to `to`; the port is 0. Sends nothing.
StatusOr<Endpoint> LocalEndpointTowards(const Endpoint& to);

// Returns a non-blocking listening socket. Port 0: any; *at gets the actual one. FailedPrecondition: the port is taken.
StatusOr<int> Listen(Endpoint* at);
// Returns a non-blocking socket that is connecting. Once it is writable, ConnectResult returns the result.
StatusOr<int> StartConnect(const Endpoint& to);
Status ConnectResult(int fd);

}  // namespace gannet::rdma::control
