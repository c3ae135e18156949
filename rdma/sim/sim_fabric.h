// The sim fabric: nodes of a Simulation, joined by modelled NICs. It keeps the contract of fabric.h and promises
// nothing more. nic_profile.h says how long a verb takes, faults.h what can go wrong.
#pragma once

#include <cstdint>
#include <memory>

#include "base/status.h"
#include "rdma/fabric.h"
#include "rdma/heap_parts.h"
#include "rdma/sim/nic_profile.h"
#include "rdma/sim/simulation.h"

namespace gannet::rdma::sim {

// How a node's server threads find calls. (Worker threads that serve between their coroutines are not concerned.)
enum class Serving : uint8_t {
  // A free thread takes the oldest call, at once: threads that poll all connections, each with a core of its own.
  kShared,
  // Each connection belongs to a thread, which polls its connections all the time. Threads share the node's cores: one
  // that polls keeps its core until its quantum ends.
  kPolling,
  // Each connection belongs to a thread, which sleeps until a call wakes it.
  kEvents,
};

struct SimFabricOptions {
  int num_nodes = 1;                                     // at most kMaxSimNodes
  uint64_t bytes_per_node = uint64_t{1} << 30;           // address space; only touched pages use memory
  uint32_t read_only_percent = kDefaultReadOnlyPercent;  // of it: the part that others only READ (heap_parts.h)
  NicProfile nic = *FindNicProfile("cx4-100g");
  Serving serving = Serving::kShared;
  // Round trips to other nodes take different times (spread.h): all verbs of one posting to one node together, and each
  // call. Without it, a verb or message takes what the NICs' queues make it wait, and otherwise always the same.
  bool spread = false;
  // CPU time of a server thread from the event that wakes it until it looks for the call. An estimate: half of a round
  // trip between two threads through two eventfds, here.
  uint64_t wake_up_nanos = 2'400;
  // Time until a dead node is known to be dead. From then on verbs to it fail.
  uint64_t detection_nanos = 1'000'000;
};

struct NicStatistics {
  uint64_t verbs_sent = 0;
  uint64_t verbs_served = 0;
  uint64_t bytes_out = 0;
  uint64_t bytes_in = 0;
  uint64_t busy_send_nanos = 0;    // of the engine that sends verbs
  uint64_t busy_serve_nanos = 0;   // of the engine that serves READs, WRITEs and messages
  uint64_t busy_atomic_nanos = 0;  // of the engine that serves atomics
  uint64_t busy_out_nanos = 0;     // of the link, per direction
  uint64_t busy_in_nanos = 0;
};

class SimFabric : public Fabric {
 public:
  // `simulation` must outlive it.
  static StatusOr<std::unique_ptr<SimFabric>> Create(Simulation* simulation, const SimFabricOptions& options);

  // Node `id` dies at once, with its threads and its memory. Attach makes a new node in its place, with zeroed memory.
  virtual void Kill(NodeId id) = 0;
  // Node `id` dies when its `n`-th verb or call from now on has left its NIC; later ones do not leave.
  virtual void KillAfterVerbs(NodeId id, uint64_t n) = 0;
  // True if the node lives. When it has died, the others may not know yet.
  virtual bool Runs(NodeId id) const = 0;
  // Cuts one direction of a link until it is mended.
  virtual void Cut(NodeId from, NodeId to) = 0;
  virtual void Mend(NodeId from, NodeId to) = 0;
  virtual void MendAll() = 0;
  virtual NicStatistics nic_statistics(NodeId id) const = 0;
};

}  // namespace gannet::rdma::sim
