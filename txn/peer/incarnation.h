// Incarnation: this process of a node, as the other nodes know it (peers.h): its number, the numbers of its requests,
// and the connections by which it has joined at the other nodes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "rdma/global_address.h"

namespace gannet::txn {

// Thread-safe.
class Incarnation {
 public:
  explicit Incarnation(int num_nodes) : joined_(static_cast<size_t>(num_nodes)) {}

  uint64_t number() const { return number_; }
  // Requests are numbered above the incarnation.
  uint64_t NextRequest() { return ++last_request_; }
  // No request with a lower number will be sent.
  uint64_t next_request() const { return last_request_.load() + 1; }

  // The connection by which this node has joined at `owner`; 0: it has not.
  uint64_t JoinedBy(rdma::NodeId owner) const { return joined_[owner].load(std::memory_order_relaxed); }
  void NoteJoined(rdma::NodeId owner, uint64_t connection) {
    joined_[owner].store(connection, std::memory_order_relaxed);
  }

 private:
  // The number is greater than those of all earlier processes of this node: no process starts within a nanosecond.
  const uint64_t number_ = WallNanos();
  std::atomic<uint64_t> last_request_{number_};
  std::vector<std::atomic<uint64_t>> joined_;
};

}  // namespace gannet::txn
