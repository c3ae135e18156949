#include "cluster/join/hello.h"

#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/coro/task.h"

namespace gannet::cluster {
namespace {

struct Request {
  uint32_t protocol;
  uint32_t reserved;
  uint64_t configuration;
};

struct Response {
  uint32_t protocol;
  ServerState state;
};

coro::Task<StatusOr<size_t>> CallHello(rdma::Channel* channel, rdma::NodeId server, std::span<const std::byte> request,
                                       std::span<std::byte> response, absl::Duration timeout) {
  co_return co_await channel->Call(server, kHello, request, response, timeout);
}

}  // namespace

void HelloService::Register(rdma::Node& node) {
  node.Handle(kHello, [this](rdma::NodeId caller, std::span<const std::byte> request, std::span<std::byte> response) {
    return Answer(caller, request, response);
  });
}

StatusOr<size_t> HelloService::Answer(rdma::NodeId caller, std::span<const std::byte> request,
                                      std::span<std::byte> response) {
  // The protocol's number is first in every version.
  uint32_t protocol = 0;
  if (request.size() < sizeof protocol) return absl::InvalidArgumentError("a hello is longer than this");
  std::memcpy(&protocol, request.data(), sizeof protocol);
  if (protocol != kProtocol) {
    return absl::FailedPreconditionError(absl::StrCat("node ", caller, " speaks protocol version ", protocol,
                                                      ", this server ", kProtocol,
                                                      "; run the same version everywhere"));
  }
  Request hello{};
  if (request.size() != sizeof hello || response.size() < sizeof(Response)) {
    return absl::InvalidArgumentError("a hello has another length");
  }
  std::memcpy(&hello, request.data(), sizeof hello);
  if (hello.configuration != configuration_) {
    return absl::FailedPreconditionError(
        absl::StrCat("node ", caller, " has another cluster file than this server: give all processes the same"));
  }
  const Response answer{.protocol = kProtocol, .state = state_.load(std::memory_order_acquire)};
  std::memcpy(response.data(), &answer, sizeof answer);
  return sizeof answer;
}

StatusOr<ServerState> SayHello(rdma::Channel& channel, coro::Worker& worker, rdma::NodeId server,
                               uint64_t configuration, absl::Duration timeout) {
  const Request hello{.protocol = kProtocol, .reserved = 0, .configuration = configuration};
  Response answer{};
  const StatusOr<size_t> bytes = worker.BlockOn(CallHello(&channel, server, std::as_bytes(std::span(&hello, 1)),
                                                          std::as_writable_bytes(std::span(&answer, 1)), timeout));
  if (!bytes.ok()) return bytes.status();
  if (*bytes != sizeof answer || answer.state < ServerState::kLoading || answer.state > ServerState::kLeaving) {
    return absl::FailedPreconditionError(absl::StrCat("node ", server, " answers in another way than this version"));
  }
  return answer.state;
}

}  // namespace gannet::cluster
