// Knows which incarnation of each other node may change this node's records, and how far the repair after a dead one
// has come (repair.h).
//
//   stranger --Join--> joined --it is dead--> dying --its decisions are carried out--> forwarded --released--> stranger
//                         '----> accused ------^
//
// Accused: another node has found it dead, but for this node's fabric it lives (it was stopped for a while, or a link
// between others broke). It may continue to write here until it is cut off (Node::CutOff), so nothing that it holds is
// touched before that.
//
// A node joins at an owner before it asks for the first lock there. Its requests are admitted while it is joined and if
// they have numbers of its incarnation. So no request of a dead node is carried out any more once its repair has begun
// and the requests in progress have ended (IsQuiet). The fabric stops its verbs (fabric.h, 5).
//
// An incarnation is a number that only grows from one process of a node to the next; its requests' numbers are above.
// No process can join in the place of a node before the repair after its predecessor is complete: locks name the node,
// not the incarnation. A join is valid for one connection (Node::ConnectionTo). When that connection breaks, the other
// node counts as dead here, though it may live and join again. The other node asks for locks, and writes what it has
// locked, only over the connection by which it joined. So it cannot write what this node has released.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "base/thread.h"
#include "rdma/global_address.h"

namespace gannet::txn {

struct LocalNode;

// Thread-safe.
class Peers {
 public:
  enum class Phase : uint8_t { kStranger, kJoined, kAccused, kDying, kForwarded };
  enum class Verdict : uint8_t { kUnknown, kNotYet, kFenced };

  // The number for a request that has none.
  static constexpr uint64_t kUnnumbered = UINT64_MAX - 1;

  Peers(int num_nodes, rdma::NodeId self);

  // Exists as long as a request is carried out.
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

  // Does what Join does, but the node does not ask for locks yet; this only shows that its predecessor is dead.
  Status Announce(rdma::NodeId node, uint64_t incarnation);
  // `connection`: by which it joins (not 0). Its requests are numbered from `first_request` on, which is not below
  // `incarnation`. Unavailable: its predecessor is still being repaired; ask again. FailedPrecondition: there is a
  // newer one.
  Status Join(rdma::NodeId node, uint64_t incarnation, uint64_t first_request, uint64_t connection);
  // Called when another node says that this incarnation of `node` is dead. True if none of its decisions waits here any
  // more.
  bool IsForwarded(rdma::NodeId node, uint64_t incarnation);
  // Called for the same reason. From now on none of its requests is admitted. kUnknown: no incarnation here could have
  // locked anything. kNotYet: it may still write here. kFenced: nothing of it takes effect any more, except requests in
  // progress.
  Verdict Fence(rdma::NodeId node, uint64_t incarnation);
  // This node's fabric has lost it, or has cut it off. If it was joined or accused, it is dying now. Otherwise nothing
  // happens.
  void NoteDeath(rdma::NodeId node);
  // True if the node joined by another connection than `connection`, which is the present one: it has been lost.
  bool IsLost(rdma::NodeId node, uint64_t connection) const;

  // Looks every few milliseconds which connection to the node there is (Node::ConnectionTo). `present` returns it,
  // while no node joins; 0: the node is lost. True if an earlier connection has ended since the last look: one that the
  // last look found, or by which the node joined since.
  bool NoteConnection(rdma::NodeId node, absl::FunctionRef<uint64_t()> present, uint64_t now);
  // Time of the first NoteConnection that found the node lost. 0: it is not known to be lost; or another process has
  // its place, and nothing that it left here is still to be repaired.
  uint64_t lost_at(rdma::NodeId node) const;

  Phase phase(rdma::NodeId node) const;
  uint64_t incarnation(rdma::NodeId node) const;  // 0: a stranger
  uint64_t connection(rdma::NodeId node) const;   // by which it joined; 0: a stranger
  // None of a dying node's requests is being carried out.
  bool IsQuiet(rdma::NodeId node) const { return peers_[node].inside.load() == 0; }
  void SetForwarded(rdma::NodeId node);
  void SetReleased(rdma::NodeId node);

 private:
  static constexpr uint64_t kNobody = UINT64_MAX;
  struct Peer {
    Phase phase = Phase::kStranger;
    uint64_t incarnation = 0;  // that joined
    uint64_t newest = 0;       // that joined or was announced, ever
    uint64_t connection = 0;
    uint64_t noted = 0;  // the connection of the last look, or by which it joined since
    std::atomic<uint64_t> lost_at{0};
    std::atomic<uint64_t> admits_from{kNobody};  // numbers of requests
    std::atomic<uint32_t> inside{0};
  };

  void Kill(Peer* peer, Phase phase);
  // Ok if no predecessor of `incarnation` is in the way, and it has no successor. A join of a dead process may have
  // waited here for a thread until its successor was announced: if it were admitted, nobody would ever notice that this
  // process is dead. The caller holds the lock.
  Status MakeWay(Peer* peer, rdma::NodeId node, uint64_t incarnation);
  bool Knows(rdma::NodeId node) const { return node < peers_.size(); }

  mutable Mutex mutex_;  // guards phases and incarnations
  std::vector<Peer> peers_;
};

// The status of a transaction for which the state word of a record is `state`, because the record stays locked or was
// changed: ConflictAt. A lock that a lost node left is a conflict, too, because repairs take some milliseconds. But
// some do not end: one waits for a node that stands still, or nobody knows any more what the record should contain. So
// DatabaseOptions::call_timeout after the loss such a lock is Unavailable.
Status LockedTooLong(const LocalNode& local, const Peers& peers, uint64_t state);

}  // namespace gannet::txn
