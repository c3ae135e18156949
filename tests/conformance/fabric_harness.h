// What a fabric provides to run the conformance suite: a cluster in which the test drives node 0, and the program of
// fabric_peer.h runs on every other node (in threads, processes, or machines: the suite does not know).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "rdma/fabric.h"

namespace gannet::rdma::conformance {

class FabricHarness {
 public:
  virtual ~FabricHarness() = default;

  virtual Fabric& fabric() = 0;
  // Node 0, not serving yet.
  virtual Node& node() = 0;
  // The peer's node dies at once, without cleaning up.
  virtual void Kill(NodeId peer) = 0;
  // Starts the program again on a node that was killed or has left.
  virtual void Restart(NodeId peer) = 0;
  // Timeout of calls that must succeed. Longer where the machine itself may stand still for seconds.
  virtual absl::Duration patience() const { return Channel::kDefaultCallTimeout; }
  // True if the fabric uses every freedom that the contract leaves it.
  virtual bool adversarial() const = 0;
};

struct FabricFactory {
  std::string name;
  std::function<std::unique_ptr<FabricHarness>(int num_nodes)> make;
};

inline constexpr uint64_t kHarnessBytesPerNode = 16 << 20;

}  // namespace gannet::rdma::conformance
