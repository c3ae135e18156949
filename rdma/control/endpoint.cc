#include "rdma/control/endpoint.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace gannet::rdma::control {
namespace {

StatusOr<int> OpenSocket() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return absl::ErrnoToStatus(errno, "cannot open a socket");
  const int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return fd;
}

Status CloseAnd(int fd, Status status) {
  close(fd);
  return status;
}

}  // namespace

std::string Endpoint::host() const {
  std::array<char, INET_ADDRSTRLEN> text{};
  inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return text.data();
}

std::string Endpoint::ToString() const {
  return absl::StrCat(host(), ":", port());
}

StatusOr<Endpoint> ParseEndpoint(const std::string& text) {
  const size_t colon = text.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(text.substr(colon + 1), &port) || port == 0 || port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not host:port with a port from 1 to 65535"));
  }
  const std::string host = colon == 0 ? "127.0.0.1" : text.substr(0, colon);
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found); error != 0) {
    return absl::InvalidArgumentError(absl::StrCat("host '", host, "' has no IPv4 address: ", gai_strerror(error)));
  }
  Endpoint endpoint;
  std::memcpy(&endpoint.address, found->ai_addr, sizeof endpoint.address);
  endpoint.address.sin_port = htons(static_cast<uint16_t>(port));
  freeaddrinfo(found);
  return endpoint;
}

StatusOr<int> Listen(const Endpoint& at) {
  const StatusOr<int> fd = OpenSocket();
  if (!fd.ok()) return fd.status();
  const int yes = 1;
  setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(*fd, reinterpret_cast<const sockaddr*>(&at.address), sizeof at.address) != 0 || listen(*fd, 128) != 0) {
    const int error = errno;
    const std::string what = absl::StrCat("cannot listen at ", at.ToString());
    if (error == EADDRINUSE) {
      return CloseAnd(*fd, absl::FailedPreconditionError(absl::StrCat(what, ": the port is taken by someone alive")));
    }
    return CloseAnd(*fd, absl::ErrnoToStatus(error, what));
  }
  return *fd;
}

StatusOr<int> StartConnect(const Endpoint& to) {
  const StatusOr<int> fd = OpenSocket();
  if (!fd.ok()) return fd.status();
  if (connect(*fd, reinterpret_cast<const sockaddr*>(&to.address), sizeof to.address) != 0 && errno != EINPROGRESS) {
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
