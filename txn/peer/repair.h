// Repair after the death of a node: the locks, placeholders and half installed transactions that it left in the memory
// of live nodes. docs/repair.md has the argument, and lists what a death can leave at each step.
//
// A transaction that changes more than one thing at other nodes first has all of it noted at one of them, its decider
// (kTxnDecide). From then on it is committed, and the decider can complete it if the coordinator dies. If several nodes
// own the changes, another one has the same note before the decider, because the decider shows its own part at once. So
// the decision outlives any two nodes that die together. A transaction that changes one thing elsewhere needs no note:
// that thing is done or not. So everything that a dead node left is one of these:
//
//   decided       carried out: each node that has the note sends each owner what it has not seen yet (kTxnFinishFor)
//   anything else undone: each owner releases the locks, and removes the placeholders from its indexes. No transaction
//                 can have seen any of it.
//
// Every node does this for its own memory, for each node that died:
//
//   1  none of its requests is admitted any more, and none of its verbs takes effect (peers.h): this node's own fabric
//      has lost it or, if others found it dead, has cut it off
//   2  its locks in the indexes here are released (IndexTraits::client_writes). They come before all else, because the
//      threads that serve requests may be waiting for them, and the other steps take requests, here and elsewhere
//   3  if it may have claimed leaves here (index/claim_boards.h): when their lease has ended for sure, kClaimTerm after
//      this node knows that the connection has ended, its claims are ended. Until then nobody changes these leaves, and
//      its successor does not join. (A node that claims need not have joined: what it reads needs no repair.)
//   4  its decisions that are noted here are carried out, here and elsewhere
//   5  wait until every other live node has done 4
//   6  all records here that it holds are released
//
// If three nodes die together, both notes and the coordinator may be lost. Then a decided transaction may be undone at
// one owner after its effect was seen at another. Data in the memory of dead nodes is Unavailable in any case.
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

class Incarnation;
class OwnerService;
class Peers;
struct LocalNode;

class Repairer {
 public:
  // All must outlive it.
  Repairer(const LocalNode* local, Peers* peers, OwnerService* owner, const Incarnation* incarnation);
  ~Repairer() { Stop(); }
  Repairer(const Repairer&) = delete;
  Repairer& operator=(const Repairer&) = delete;

  // Announces this incarnation to the others and begins to watch for deaths, in a thread of its own.
  void Start();
  // Stops at once, also in the middle of a repair.
  void Stop();
  // A node has been found dead: begins the repair without delay.
  void Wake();
  // Notes which nodes have died, and takes away the locks that they hold in indexes. Thread-safe: a thread that waits
  // for such a lock calls this, because the repair may wait for that thread.
  bool ReleaseDead();
  // The program is told of no node any more (DatabaseOptions::on_event), from the return of this call on. The repair
  // continues, because the other nodes may need it.
  void StopTelling();

 private:
  void Loop();
  // Looks which nodes are there, also whether this one is, and tells the program of those that have been lost.
  void Look();
  void TellOfLoss(rdma::NodeId node);
  // True if there is more to do.
  bool Round();
  // Announces this incarnation. Otherwise possibly no node would notice that the one before it died.
  bool AnnounceAll();
  // Does step 2, once, if the node is dead.
  void ReleaseIndexes(rdma::NodeId dead);
  // Each returns true if its step is done, false if it must be tried again.
  bool EndClaims(rdma::NodeId node);
  bool Forward(rdma::NodeId dead);
  bool OthersHaveForwarded(rdma::NodeId dead);
  // True if the node took it, or is dead itself.
  bool Send(rdma::NodeId to, std::span<const std::byte> request);
  StatusOr<size_t> Call(rdma::NodeId to, rdma::MethodId method, std::span<const std::byte> request,
                        std::span<std::byte> response, uint64_t connection = 0);
  bool Stopped() const;

  const LocalNode* const local_;
  Peers* const peers_;
  OwnerService* const owner_;
  const Incarnation* const incarnation_;
  mutable Mutex mutex_;  // guards the flags
  CondVar wake_;
  bool stop_ = false;
  bool woken_ = false;
  Mutex telling_;  // held while the program is told; guards tells_
  bool tells_ = true;
  std::unique_ptr<rdma::Channel> channel_;  // while there is something to repair
  std::unique_ptr<coro::Worker> worker_;
  Mutex releasing_;                     // held while locks in indexes are released
  std::vector<bool> indexes_released_;  // guarded by releasing_; by node
  std::vector<uint64_t> announced_;     // by node: the connection over which it was told
  Thread thread_;
};

}  // namespace gannet::txn
