// The first call of a client to each server: it finds out whether the two fit together and the server is ready.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "absl/time/time.h"
#include "base/coro/worker.h"
#include "base/status.h"
#include "rdma/fabric.h"

namespace gannet::cluster {

// Version of what processes of a cluster send to each other, and of how data lies in their memory. A change of either
// increments it; processes of two versions refuse each other.
inline constexpr uint32_t kProtocol = 3;

inline constexpr rdma::MethodId kHello = 1024;  // cluster: 1024-1279 (rdma/fabric.h)

enum class ServerState : uint32_t { kLoading = 1, kReady = 2, kLeaving = 3 };

// Answers hellos. Thread-safe.
class HelloService {
 public:
  // `configuration` is Config::Hash().
  explicit HelloService(uint64_t configuration) : configuration_(configuration) {}
  // Call it before the node serves. This must outlive the node.
  void Register(rdma::Node& node);
  void Set(ServerState state) { state_.store(state, std::memory_order_release); }

 private:
  StatusOr<size_t> Answer(rdma::NodeId caller, std::span<const std::byte> request, std::span<std::byte> response);

  const uint64_t configuration_;
  std::atomic<ServerState> state_{ServerState::kLoading};
};

// Calls `server` on `channel`, which `worker` polls, and waits for the answer. FailedPrecondition, with the reason, if
// the server refuses; Unavailable or DeadlineExceeded if it does not answer.
StatusOr<ServerState> SayHello(rdma::Channel& channel, coro::Worker& worker, rdma::NodeId server,
                               uint64_t configuration, absl::Duration timeout);

}  // namespace gannet::cluster
