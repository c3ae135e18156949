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
//    no exception: verbs on it go through the card, too, because most cards' atomics are atomic only with each other,
//    and because order among a channel's verbs on a node is the order of one queue pair.
//  - Order (3): a queue pair's responder executes WRITEs, SENDs and atomics in the order sent (InfiniBand
//    specification, C9-28), and a READ sent after them sees them. So nothing needs a fence, and a batch is posted as
//    one list.
//  - A batch costs one doorbell and one completion per node: only the last work request of each list is signalled.
//  - Local buffers may lie anywhere: what is not in the node's own heap is copied through a registered buffer, or sent
//    inline where the card has room for that.
//  - CALL is SEND both ways, in fragments of 4 KiB, with receive buffers per queue pair and a window that both ends
//    know: no message is ever sent that the other has no buffer for, so a server whose threads are all busy holds up
//    neither the one-sided verbs on that queue pair nor other clients (with a shared receive queue it would do the
//    second; rings written by WRITE_WITH_IMM would need 128 KiB per call in flight, of every channel at every node).
//  - Death (5): rdma/control keeps a TCP session with heartbeats with every node. Whose process ends is known at once;
//    who falls silent after `silence_limit`. Then first the queue pairs that it opened here are destroyed, so that a
//    node given up for dead cannot write any more; only after that Alive is false, and what waits for it Unavailable.
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
#include "rdma/heap_parts.h"

namespace gannet::rdma {

struct VerbsOptions {
  // host:port of every node's control port, by id. The host's address also chooses the card: it is the one that
  // rdma_cm finds behind it, with the port and the GID that belong to the address. Empty: a guest's place; those come
  // last.
  std::vector<std::string> nodes;
  std::string guest_host;  // where a guest of this process listens; empty: its address on the way to node 0
  uint64_t bytes_per_node = uint64_t{1} << 30;
  std::vector<uint64_t> bytes_of_node;                   // of each, where they differ; none is more than bytes_per_node
  uint32_t read_only_percent = kDefaultReadOnlyPercent;  // of it is for what others only READ (heap_parts.h)
  std::string secret;          // whoever knows it may read and write all memory of the cluster
  uint64_t configuration = 0;  // processes with different ones refuse each other: a hash of what they share
  // Whether a node with an address may come back as another process. If not, those who knew the first refuse it.
  bool may_return = true;
  // What the card must be, if they are given; they do not choose it.
  std::string device;  // "mlx5_0"
  int port = 0;        // of the device, from 1 on
  int gid = -1;        // index in the port's table
  // How long a server thread polls after its last work before it sleeps until the card wakes it. Zero: never polls
  // (saves CPU); infinite: never sleeps.
  absl::Duration server_poll = absl::Microseconds(50);
  // How long a channel polls in vain, while something of it is under way, before it sleeps until the card wakes it, at
  // most for a millisecond at a time. Infinite: never sleeps.
  absl::Duration worker_poll = absl::InfiniteDuration();
  absl::Duration silence_limit = absl::Seconds(5);  // a node that was not heard of for so long is dead
  absl::Duration connect_limit = absl::Seconds(5);  // for making a queue pair
};

// Of the nodes that a fabric attached.
struct VerbsStatistics {
  uint64_t queue_pairs_served = 0;  // that peers have here now
  uint64_t queue_pairs_cut = 0;     // since the start, because a peer broke the rules or its connection broke
  uint64_t refused = 0;             // connections to the control port that were turned away
  uint64_t half_open = 0;           // connections to the control port that have not proved who they are
  std::string last_refusal;
};

inline constexpr int kMaxVerbsNodes = 1024;
inline constexpr int kMaxVerbsChannelsPerNode = 128;

class VerbsFabric : public Fabric {
 public:
  // InvalidArgument for bad options; NotFound if no address is one of an RDMA device of this machine (ListDevices of
  // rdma/verbs/devices.h says why). Tells nobody anything yet.
  static StatusOr<std::unique_ptr<VerbsFabric>> Create(const VerbsOptions& options);

  // Of the nodes that this fabric attached. PermissionDenied, with the reason, if the others refused them.
  virtual Status standing() const = 0;
  // Alive, or, if this process is a guest, node 0 had it for alive when it last told.
  virtual bool KnowsOfGuest(NodeId id) const = 0;
  // Why node `id` is not alive, for messages.
  virtual std::string WhyDown(NodeId id) const = 0;
  virtual VerbsStatistics statistics() const = 0;

  // For tests: node `id`, which this fabric attached, dies on the spot.
  virtual void Kill(NodeId id) = 0;
};

}  // namespace gannet::rdma
