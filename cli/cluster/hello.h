// The first call of a client to each server: do they fit together, and has the server its data?
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "base/status.h"
#include "rdma/fabric.h"
#include "txn/session.h"

namespace gannet::cli {

// Of what processes of a cluster say to each other, and of how data lies in their memory. Whoever changes either counts
// it up; processes of two versions refuse each other.
inline constexpr uint32_t kClusterProtocol = 2;

enum class ServerState : uint32_t { kLoading = 1, kReady = 2, kLeaving = 3 };

// Answers hellos. Thread-safe.
class HelloService {
 public:
  explicit HelloService(uint64_t configuration) : configuration_(configuration) {}
  // Before Database::Start. This must outlive the node.
  void Register(rdma::Node& node);
  void Set(ServerState state) { state_.store(state, std::memory_order_release); }
  uint64_t hellos() const { return hellos_.load(std::memory_order_relaxed); }

 private:
  StatusOr<size_t> Answer(rdma::NodeId caller, std::span<const std::byte> request, std::span<std::byte> response);

  const uint64_t configuration_;
  std::atomic<ServerState> state_{ServerState::kLoading};
  std::atomic<uint64_t> hellos_{0};
};

// FailedPrecondition, with the reason, if `server` refuses; Unavailable or DeadlineExceeded if it does not answer.
StatusOr<ServerState> SayHello(txn::Session& session, rdma::NodeId server, uint64_t configuration,
                               absl::Duration timeout);

}  // namespace gannet::cli
