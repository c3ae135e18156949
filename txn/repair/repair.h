// Repair of what a dead node left in the memory of those that live: locks, placeholders, transactions that were half
// installed. docs/repair.md has the argument, and what a death can leave at each step.
//
// A transaction that changes more than one thing at other nodes first has all of it noted at one of them, its decider
// (kTxnDecide): from then on it is committed, and the decider can bring it to its end in the place of a coordinator
// that died. If several nodes own the changes, another one has the same note before the decider, which shows its own
// part at once: so the decision outlives any two nodes that die together. A transaction that changes one thing
// elsewhere needs no note: that thing is done or not. So what a dead node left is
//
//   decided       carried out: whoever has the note sends each owner what it has not seen yet (kTxnFinishFor)
//   anything else undone: each owner releases the locks, and takes the placeholders out of its indexes. Nobody can have
//                 seen any of it.
//
// Every node does this, for itself, about each node that died:
//
//   1  no request of it is admitted any more, and no verb of it takes effect (peers.h): it has been lost by this
//      node's own fabric, or, if others found it dead, has been cut off here
//   2  the decisions of it that are noted here are carried out, here and elsewhere
//   3  wait until every other live node has done 2
//   4  all records here that it holds are released
//
// Three nodes that die together may take both notes and the coordinator along. Then what was decided may be undone at
// one owner and have been seen at another. Data in the memory of the dead is Unavailable in any case.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/coro/worker.h"
#include "base/status.h"
#include "base/thread.h"
#include "rdma/fabric.h"

namespace gannet::txn {

struct DatabaseState;

class Repairer {
 public:
  explicit Repairer(DatabaseState* db) : db_(db) {}
  ~Repairer() { Stop(); }
  Repairer(const Repairer&) = delete;
  Repairer& operator=(const Repairer&) = delete;

  // This incarnation is announced to the others, and from now on deaths are looked for, in a thread of its own.
  void Start();
  // Leaves what it is at as it is.
  void Stop();
  // A node has been found dead: do not wait.
  void Wake();

 private:
  void Loop();
  // True if there is more to do.
  bool Round();
  // Makes this incarnation known: or else nobody might notice that the one before it died.
  bool AnnounceAll();
  // Each true if its step is done, false to be tried again.
  bool Forward(rdma::NodeId dead);
  bool OthersHaveForwarded(rdma::NodeId dead);
  // The node took it, or is dead itself.
  bool Send(rdma::NodeId to, std::span<const std::byte> request);
  StatusOr<size_t> Call(rdma::NodeId to, rdma::MethodId method, std::span<const std::byte> request,
                        std::span<std::byte> response, uint64_t connection = 0);
  bool Stopped() const;

  DatabaseState* db_;
  mutable Mutex mutex_;  // of the flags
  CondVar wake_;
  bool stop_ = false;
  bool woken_ = false;
  std::unique_ptr<rdma::Channel> channel_;  // while there is something to repair
  std::unique_ptr<coro::Worker> worker_;
  std::vector<uint64_t> announced_;  // by node: over which connection
  Thread thread_;
};

}  // namespace gannet::txn
