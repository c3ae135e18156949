// Which incarnation of each other node may change this node's records, and how far the repair of what a dead one left
// has come (repair.h).
//
//   stranger --Join--> joined --it is dead--> dying --its decisions are carried out--> forwarded --released--> stranger
//                         '----> accused ------^
//
// Accused: another node has found it dead, but for this one's fabric it lives (it stood still; a link of others broke).
// It may go on writing here until it is cut off (Node::CutOff), so nothing it holds is touched before that.
//
// A node joins at an owner before it asks for the first lock there. Its requests are admitted while it is joined, and
// if they are numbered as its incarnation numbers them; so no request of a dead node is carried out any more once its
// repair has begun and those inside have come out (AwaitQuiet). Its verbs the fabric stops (fabric.h, 5).
//
// An incarnation is a number that only grows from one process of a node to the next; its requests' numbers are above.
// Nobody can join in the place of a node before what that left here has been repaired: locks name the node, not the
// incarnation. A join is good for one connection (Node::ConnectionTo): when that breaks, the node has died as far as
// this one is concerned, though it may live and join again. At its end the other asks for locks, and writes what it has
// locked, over the connection it joined by and no other; so what this one has released nobody goes on writing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "base/thread.h"
#include "rdma/global_address.h"

namespace gannet::txn {

// Thread-safe.
class Peers {
 public:
  enum class Phase : uint8_t { kStranger, kJoined, kAccused, kDying, kForwarded };
  enum class Verdict : uint8_t { kUnknown, kNotYet, kFenced };

  // Of a request that has no number.
  static constexpr uint64_t kUnnumbered = UINT64_MAX - 1;

  Peers(int num_nodes, rdma::NodeId self);

  // For as long as a request is carried out.
  class Stay {
   public:
    Stay(Peers* peers, rdma::NodeId node, uint64_t number);
    ~Stay();
    Stay(const Stay&) = delete;
    Stay& operator=(const Stay&) = delete;
    bool admitted() const { return peer_ != nullptr; }

   private:
    std::atomic<uint32_t>* peer_ = nullptr;  // how many are inside
  };

  // It asks for no locks yet, but its predecessor is dead. As Join otherwise.
  Status Announce(rdma::NodeId node, uint64_t incarnation);
  // Over `connection` (not 0). Its requests are numbered from `first_request` on, which is not below `incarnation`.
  // Unavailable: the one before is still being repaired; ask again. FailedPrecondition: there is a newer one.
  Status Join(rdma::NodeId node, uint64_t incarnation, uint64_t first_request, uint64_t connection);
  // Another node says that this incarnation of `node` is dead. True if none of its decisions waits here any more.
  bool IsForwarded(rdma::NodeId node, uint64_t incarnation);
  // Likewise. From now on none of its requests is admitted. kUnknown: there is none here that could have locked
  // anything. kNotYet: it may still write here. kFenced: nothing of it takes effect any more, but for those inside.
  Verdict Fence(rdma::NodeId node, uint64_t incarnation);
  // This node's fabric has lost it, or has cut it off. Joined or accused: it is dying now. Otherwise nothing happens.
  void NoteDeath(rdma::NodeId node);
  // Joined, but not by this connection, which is the present one: it has been lost.
  bool IsLost(rdma::NodeId node, uint64_t connection) const;

  Phase phase(rdma::NodeId node) const;
  uint64_t incarnation(rdma::NodeId node) const;  // 0: a stranger
  uint64_t connection(rdma::NodeId node) const;   // by which it joined; 0: a stranger
  // While dying: until none of its requests is being carried out.
  void AwaitQuiet(rdma::NodeId node);
  void SetForwarded(rdma::NodeId node);
  void SetReleased(rdma::NodeId node);

 private:
  static constexpr uint64_t kNobody = UINT64_MAX;
  struct Peer {
    Phase phase = Phase::kStranger;
    uint64_t incarnation = 0;
    uint64_t connection = 0;
    std::atomic<uint64_t> admits_from{kNobody};  // numbers of requests
    std::atomic<uint32_t> inside{0};
  };

  void Kill(Peer* peer, Phase phase);
  // With the lock held: whether what was there before `incarnation` is out of the way.
  Status MakeWay(Peer* peer, rdma::NodeId node, uint64_t incarnation);
  bool Knows(rdma::NodeId node) const { return node < peers_.size(); }

  mutable Mutex mutex_;  // of phases and incarnations
  std::vector<Peer> peers_;
};

}  // namespace gannet::txn
