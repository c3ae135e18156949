// The verbs fabric: nodes on machines with RDMA network cards, by plain libibverbs and librdmacm (RoCE, InfiniBand,
// iWARP, SoftRoCE).
//
//   auto fabric = VerbsFabric::Create({.nodes = {"10.0.0.1:7100", "10.0.0.2:7100"}, .secret = secret});
//   auto node = (*fabric)->Attach(0);              // on the machine 10.0.0.1; node 1 does the same on its own
//   (*fabric)->WaitForAll(absl::Seconds(60));
//
// How it keeps the contract of fabric.h:
//
//  - One RC queue pair joins each channel and each node it talks to, made at the first use (rdma_cm). Its own node is
//  no
//    exception: verbs on it go through the card, too, because most cards' atomics are atomic only with each other, and
//    because order among a channel's verbs on a node is the order of one queue pair.
//  - Order (3): a queue pair's responder executes WRITEs, SENDs and atomics in the order sent (InfiniBand
//  specification,
//    C9-28), and a READ sent after them sees them. So nothing needs a fence, and a batch is posted as one list.
//  - A batch costs one doorbell and one completion per node: only the last work request of each list is signalled.
//  - Local buffers may lie anywhere: what is not in the node's own heap is copied through a registered buffer, or sent
//    inline where the card has room for that.
//  - CALL is SEND both ways, in fragments of 4 KiB, with receive buffers per queue pair and a window that both ends
//  know:
//    no message is ever sent that the other has no buffer for, so a server whose threads are all busy holds up neither
//    the one-sided verbs on that queue pair nor other clients (with a shared receive queue it would do the second;
//    rings written by WRITE_WITH_IMM would need 128 KiB per call in flight, of every channel at every node).
//  - Death (5): rdma/control keeps a TCP session with heartbeats to every node. Whose process ends is known at once;
//  who
//    falls silent after `silence_limit`. Then everything that waits for that node becomes Unavailable, and the queue
//    pairs that it opened here are destroyed, so that a node given up for dead cannot write any more.
//
// All memory of a node is registered, and so pinned, from Attach on (see docs/running-on-rdma.md on limits).
// Thread-safe. A fabric may attach several nodes, if their addresses are this machine's (tests do).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "rdma/base/status.h"
#include "rdma/fabric.h"

namespace gannet::rdma {

struct VerbsOptions {
  // host:port of every node's control port, by id. The host's address also chooses the card: it is the one that
  // rdma_cm finds behind it, with the port and the GID that belong to the address.
  std::vector<std::string> nodes;
  uint64_t bytes_per_node = uint64_t{1} << 30;
  std::string secret;  // whoever knows it may read and write all memory of the cluster
  std::string device;  // if not empty: the card must be this one ("mlx5_0")
  // How long a server thread polls after its last work before it sleeps until the card wakes it. Zero: never polls
  // (saves CPU); infinite: never sleeps.
  absl::Duration server_poll = absl::Microseconds(50);
  absl::Duration silence_limit = absl::Seconds(5);  // a node that was not heard of for so long is dead
  absl::Duration connect_limit = absl::Seconds(5);  // for making a queue pair
};

inline constexpr int kMaxVerbsNodes = 1024;
inline constexpr int kMaxVerbsChannelsPerNode = 128;

class VerbsFabric : public Fabric {
 public:
  // InvalidArgument for bad options; NotFound if no address is one of an RDMA device of this machine (ListDevices of
  // rdma/verbs/devices.h says why). Tells nobody anything yet.
  static StatusOr<std::unique_ptr<VerbsFabric>> Create(const VerbsOptions& options);

  // For tests: node `id`, which this fabric attached, dies on the spot.
  virtual void Kill(NodeId id) = 0;
};

}  // namespace gannet::rdma
