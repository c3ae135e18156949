#include "rdma/control/endpoint.h"

#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace gannet::rdma::control {
namespace {

StatusOr<int> OpenSocket(int family, int type) {
  const int fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return absl::ErrnoToStatus(errno, "cannot open a socket");
  const int yes = 1;
  if (type == SOCK_STREAM) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  if (family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof yes);
  return fd;
}

Status CloseAnd(int fd, Status status) {
  close(fd);
  return status;
}

StatusOr<Endpoint> Resolve(const std::string& host, int flags) {
  addrinfo hints{};
  hints.ai_flags = flags;
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found); error != 0) {
    return absl::InvalidArgumentError(absl::StrCat("host '", host, "' has no address: ", gai_strerror(error)));
  }
  const addrinfo* best = nullptr;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    if (each->ai_family != AF_INET && each->ai_family != AF_INET6) continue;
    if (best == nullptr || (each->ai_family == AF_INET && best->ai_family == AF_INET6)) best = each;
  }
  Endpoint endpoint;
  if (best != nullptr) std::memcpy(&endpoint.address, best->ai_addr, best->ai_addrlen);
  freeaddrinfo(found);
  if (best == nullptr) return absl::InvalidArgumentError(absl::StrCat("host '", host, "' has no IP address"));
  return endpoint;
}

StatusOr<Endpoint> Parse(const std::string& text, int flags) {
  const size_t colon = text.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(text.substr(colon + 1), &port) || port == 0 || port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not host:port with a port from 1 to 65535"));
  }
  std::string host = colon == 0 ? "127.0.0.1" : text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "': write an IPv6 address as [address]:port"));
  }
  const StatusOr<Endpoint> endpoint = Resolve(host, flags);
  if (!endpoint.ok()) return endpoint.status();
  return endpoint->WithPort(static_cast<uint16_t>(port));
}

}  // namespace

std::string Endpoint::host() const {
  std::array<char, NI_MAXHOST> text{};
  const int error = getnameinfo(get(), size(), text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
  return error == 0 ? text.data() : "?";
}

uint16_t Endpoint::port() const {
  in_port_t port = 0;  // at the same place in both families
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  std::memcpy(&port, reinterpret_cast<const std::byte*>(&address) + offsetof(sockaddr_in, sin_port), sizeof port);
  return ntohs(port);
}

Endpoint Endpoint::WithPort(uint16_t port) const {
  Endpoint other = *this;
  const in_port_t value = htons(port);
  std::memcpy(reinterpret_cast<std::byte*>(&other.address) + offsetof(sockaddr_in, sin_port), &value, sizeof value);
  return other;
}

std::string Endpoint::ToString() const {
  const bool is_ipv6 = address.ss_family == AF_INET6;
  return absl::StrCat(is_ipv6 ? "[" : "", host(), is_ipv6 ? "]:" : ":", port());
}

StatusOr<Endpoint> ParseEndpoint(const std::string& text) {
  return Parse(text, 0);
}

StatusOr<Endpoint> ParseNumericEndpoint(const std::string& text) {
  return Parse(text, AI_NUMERICHOST);
}

StatusOr<Endpoint> ParseHost(const std::string& host) {
  return Resolve(host, 0);
}

StatusOr<Endpoint> LocalEndpointTowards(const Endpoint& to) {
  const StatusOr<int> fd = OpenSocket(to.address.ss_family, SOCK_DGRAM);
  if (!fd.ok()) return fd.status();
  Endpoint local;
  socklen_t size = sizeof local.address;
  const bool ok = connect(*fd, to.get(), to.size()) == 0 && getsockname(*fd, local.get(), &size) == 0;
  const int error = errno;
  close(*fd);
  if (!ok) return absl::ErrnoToStatus(error, absl::StrCat("no way leads from this machine to ", to.ToString()));
  return local.WithPort(0);
}

StatusOr<int> Listen(Endpoint* at) {
  const StatusOr<int> fd = OpenSocket(at->address.ss_family, SOCK_STREAM);
  if (!fd.ok()) return fd.status();
  const int yes = 1;
  setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  socklen_t size = sizeof at->address;
  if (bind(*fd, at->get(), at->size()) != 0 || listen(*fd, 128) != 0 || getsockname(*fd, at->get(), &size) != 0) {
    const int error = errno;
    const std::string what = absl::StrCat("cannot listen at ", at->ToString());
    if (error == EADDRINUSE) {
      return CloseAnd(*fd, absl::FailedPreconditionError(absl::StrCat(what, ": another process has the port")));
    }
    return CloseAnd(*fd, absl::ErrnoToStatus(error, what));
  }
  return *fd;
}

StatusOr<int> StartConnect(const Endpoint& to) {
  const StatusOr<int> fd = OpenSocket(to.address.ss_family, SOCK_STREAM);
  if (!fd.ok()) return fd.status();
  if (connect(*fd, to.get(), to.size()) != 0 && errno != EINPROGRESS) {
    const int error = errno;
    return CloseAnd(*fd,
                    absl::UnavailableError(absl::StrCat("cannot connect to ", to.ToString(), ": ", strerror(error))));
  }
  return *fd;
}

Status ConnectResult(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot connect: ", strerror(error)));
}

}  // namespace gannet::rdma::control
