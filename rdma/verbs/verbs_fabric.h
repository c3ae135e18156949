// The verbs fabric: nodes on machines with RDMA network cards, by plain libibverbs and librdmacm (RoCE, InfiniBand,
// iWARP, SoftRoCE).
//
//   auto fabric = VerbsFabric::Create({.nodes = {"10.0.0.1:7100", "10.0.0.2:7100"}, .secret = secret});
//   auto node = (*fabric)->Attach(0);              // on the machine 10.0.0.1; node 1 does the same on its own
//   (*fabric)->WaitForAll(absl::Seconds(60));
//
// A node without an address is a guest's place: a process on any machine may take it, and leave it again.
//
// How it keeps the contract of fabric.h:
//
//  - One RC queue pair joins each channel and each node it talks to, made at the first use (rdma_cm). Its own node is
//    no exception: verbs on it go through the NIC, too, because most NICs' atomics are atomic only with each other,
//    and because order among a channel's verbs on a node is the order of one queue pair.
//  - Order (3): a queue pair's responder executes WRITEs, SENDs and atomics in the order sent (InfiniBand
//    specification, C9-28), and a READ sent after them sees them. So nothing needs a fence, and a batch is posted as
//    one list.
//  - A batch costs one doorbell and one completion per node: only the last work request of each list is signalled.
//  - Local buffers may lie anywhere. Data outside the node's own heap is copied through a registered buffer, or sent
//    inline if the NIC has room for that.
//  - CALL is SEND both ways, in fragments of 4 KiB, with receive buffers per queue pair and a window that both ends
//    know. No message is ever sent for which the receiver has no buffer. So a server whose threads are all busy delays
//    neither the one-sided verbs on that queue pair nor other clients. (With a shared receive queue it would delay
//    other clients. Rings written by WRITE_WITH_IMM would need 128 KiB per call in flight, for every channel at every
//    node.)
//  - Death (5): rdma/control keeps a TCP session with heartbeats with every node. The end of a process is noticed at
//    once, a silent node after `silence_limit`. The queue pairs that the dead node opened here are destroyed first, so
//    that it cannot write any more. Only then is Alive false, and operations that wait for the node complete with
//    Unavailable.
//
// All memory of a node is registered, and so pinned, from Attach on (see docs/running-on-rdma.md on limits).
// Thread-safe. A fabric may attach several nodes, if their addresses are this machine's (tests do).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "base/status.h"
#include "rdma/fabric.h"

namespace gannet::rdma {

struct VerbsOptions {
  // host:port of every node's control port, by id. The host's address also chooses the NIC: rdma_cm
  // finds the NIC, the port and the GID that belong to the address. Empty: a guest's place; the guests' places come
  // last.
  std::vector<std::string> nodes;
  std::string guest_host;  // where a guest of this process listens; empty: its address on the way to node 0
  uint64_t bytes_per_node = uint64_t{1} << 30;
  std::vector<uint64_t> bytes_of_node;                   // of each, where they differ; none is more than bytes_per_node
  uint32_t read_only_percent = kDefaultReadOnlyPercent;  // part that others can only READ (heap_parts.h)
  std::string secret;                                    // gives access to all memory of the cluster
  uint64_t configuration = 0;  // a hash of all common settings; processes with different ones refuse each other
  // Whether a node with an address may come back as another process. If not, nodes that knew the first refuse it.
  bool may_return = true;
  // Properties that the NIC must have, if given; they do not choose the NIC.
  std::string device;  // "mlx5_0"
  int port = 0;        // of the device, from 1 on
  int gid = -1;        // index in the port's table
  // How long a server thread polls after its last work before it sleeps until the NIC wakes it. Zero: never polls
  // (saves CPU); infinite: never sleeps.
  absl::Duration server_poll = absl::Microseconds(50);
  // How long a channel with operations in flight polls without success before it sleeps until the NIC wakes it, at most
  // for a millisecond at a time. Infinite: never sleeps.
  absl::Duration worker_poll = absl::InfiniteDuration();
  absl::Duration silence_limit = absl::Seconds(5);  // a node that is silent for this long is dead
  absl::Duration connect_limit = absl::Seconds(5);  // for making a queue pair
};

// Statistics of the nodes that a fabric attached.
struct VerbsStatistics {
  uint64_t queue_pairs_served = 0;  // that peers have here now
  uint64_t queue_pairs_cut = 0;     // since the start, because a peer broke the rules or its connection broke
  uint64_t refused = 0;             // connections to the control port that were turned away
  uint64_t half_open = 0;           // connections to the control port that have not authenticated yet
  std::string last_refusal;
};

inline constexpr int kMaxVerbsNodes = 1024;
inline constexpr int kMaxVerbsChannelsPerNode = 127;  // lock words have another use for number 127

class VerbsFabric : public Fabric {
 public:
  // InvalidArgument for bad options; NotFound if no address is one of an RDMA device of this machine (ListDevices of
  // rdma/verbs/devices.h says why). Sends nothing to other processes yet.
  static StatusOr<std::unique_ptr<VerbsFabric>> Create(const VerbsOptions& options);

  // Status of the nodes that this fabric attached. PermissionDenied, with the reason, if the others refused them.
  virtual Status standing() const = 0;
  // True if the node is alive or, if this process is a guest, if node 0 reported it alive in its last message.
  virtual bool KnowsOfGuest(NodeId id) const = 0;
  // Reason why node `id` is not alive, for messages.
  virtual std::string WhyDown(NodeId id) const = 0;
  virtual VerbsStatistics statistics() const = 0;

  // Kills node `id`, which this fabric attached, at once. For tests.
  virtual void Kill(NodeId id) = 0;
};

}  // namespace gannet::rdma
