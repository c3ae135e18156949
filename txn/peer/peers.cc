#include "txn/peer/peers.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/cache_line.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/sometimes.h"
#include "index/lock_word.h"
#include "rdma/versioned.h"
#include "txn/node/local_node.h"
#include "txn/store/conflict.h"

namespace gannet::txn {

Peers::Peers(int num_nodes, rdma::NodeId self) : peers_(static_cast<size_t>(num_nodes)) {
  peers_[self].admits_from = 0;
}

// Either the stay sees that no request is admitted, or the thread that ended the admission sees the stay (IsQuiet),
// because all these accesses are seq_cst.
Peers::Stay::Stay(Peers* peers, rdma::NodeId node, uint64_t number) {
  if (!peers->Knows(node)) return;
  Peer& peer = peers->peers_[node];
  peer.inside.fetch_add(1);
  PreemptionPoint();
  if (number >= peer.admits_from.load() && peer.admits_from.load() != kNobody) {
    peer_ = &peer.inside;
  } else {
    peer.inside.fetch_sub(1);
  }
}

Peers::Stay::~Stay() {
  if (peer_ != nullptr) peer_->fetch_sub(1);
}

void Peers::Kill(Peer* peer, Phase phase) {
  peer->phase = phase;
  peer->admits_from = kNobody;
}

Status Peers::MakeWay(Peer* peer, rdma::NodeId node, uint64_t incarnation) {
  if (incarnation < peer->newest) {
    return absl::FailedPreconditionError(absl::StrCat("node ", node, " has been started again"));
  }
  peer->newest = incarnation;
  const bool is_there = peer->phase == Phase::kJoined || peer->phase == Phase::kAccused;
  if (is_there && peer->incarnation < incarnation) {  // the fabric has ended that process
    Sometimes<"peers: a node is back before its death was known">();
    Kill(peer, Phase::kDying);
  }
  if (peer->phase == Phase::kAccused || peer->phase == Phase::kDying || peer->phase == Phase::kForwarded) {
    Sometimes<"peers: a node that is back waits for the repair">();
    return absl::UnavailableError(absl::StrCat("what node ", node, " left when it died is being repaired; ask again"));
  }
  return absl::OkStatus();
}

Status Peers::Announce(rdma::NodeId node, uint64_t incarnation) {
  if (!Knows(node) || incarnation == 0) return absl::InvalidArgumentError("announce: no such node, or no incarnation");
  std::lock_guard lock(mutex_);
  return MakeWay(&peers_[node], node, incarnation);
}

Status Peers::Join(rdma::NodeId node, uint64_t incarnation, uint64_t first_request, uint64_t connection) {
  if (!Knows(node) || incarnation == 0 || first_request < incarnation) {
    return absl::InvalidArgumentError("join: no such node, or no incarnation");
  }
  if (connection == 0) return absl::UnavailableError(absl::StrCat("node ", node, " is not connected"));
  std::lock_guard lock(mutex_);
  Peer& peer = peers_[node];
  const bool is_there = peer.phase == Phase::kJoined || peer.phase == Phase::kAccused;
  // It joins over another connection: the fabric has ended the one before.
  if (is_there && peer.incarnation == incarnation && peer.connection != connection) Kill(&peer, Phase::kDying);
  GANNET_RETURN_IF_ERROR(MakeWay(&peer, node, incarnation));
  if (peer.phase == Phase::kJoined) return absl::OkStatus();
  peer.phase = Phase::kJoined;
  peer.lost_at = 0;
  if (peer.noted == 0) peer.noted = connection;
  peer.incarnation = incarnation;
  peer.connection = connection;
  peer.admits_from = first_request;
  return absl::OkStatus();
}

bool Peers::IsForwarded(rdma::NodeId node, uint64_t incarnation) {
  if (!Knows(node)) return true;
  std::lock_guard lock(mutex_);
  Peer& peer = peers_[node];
  if (peer.incarnation > incarnation) return true;
  if (peer.phase == Phase::kJoined) {
    Sometimes<"peers: a node learns of a death from another one's question">();
    Kill(&peer, Phase::kAccused);
  }
  return peer.phase == Phase::kStranger || peer.phase == Phase::kForwarded;
}

Peers::Verdict Peers::Fence(rdma::NodeId node, uint64_t incarnation) {
  if (!Knows(node)) return Verdict::kUnknown;
  std::lock_guard lock(mutex_);
  Peer& peer = peers_[node];
  if (peer.incarnation != incarnation || peer.phase == Phase::kStranger) {
    Sometimes<"peers: a decided transaction comes when the repair is over">();
    return Verdict::kUnknown;
  }
  if (peer.phase == Phase::kJoined) Kill(&peer, Phase::kAccused);
  return peer.phase == Phase::kAccused ? Verdict::kNotYet : Verdict::kFenced;
}

void Peers::NoteDeath(rdma::NodeId node) {
  std::lock_guard lock(mutex_);
  Peer& peer = peers_[node];
  if (peer.phase == Phase::kJoined || peer.phase == Phase::kAccused) Kill(&peer, Phase::kDying);
}

bool Peers::IsLost(rdma::NodeId node, uint64_t connection) const {
  std::lock_guard lock(mutex_);
  const Peer& peer = peers_[node];
  return (peer.phase == Phase::kJoined || peer.phase == Phase::kAccused) && peer.connection != connection;
}

bool Peers::NoteConnection(rdma::NodeId node, absl::FunctionRef<uint64_t()> present, uint64_t now) {
  std::lock_guard lock(mutex_);
  const uint64_t connection = present();
  Peer& peer = peers_[node];
  const bool in_repair = peer.phase != Phase::kStranger && peer.phase != Phase::kJoined;
  if (connection != 0 && !in_repair) {
    peer.lost_at = 0;
  } else if (peer.lost_at == 0) {
    peer.lost_at = now;
  }
  const uint64_t before = std::exchange(peer.noted, connection);
  return before != 0 && before != connection;
}

uint64_t Peers::lost_at(rdma::NodeId node) const {
  return Knows(node) ? peers_[node].lost_at.load() : 0;
}

Peers::Phase Peers::phase(rdma::NodeId node) const {
  std::lock_guard lock(mutex_);
  return peers_[node].phase;
}

uint64_t Peers::incarnation(rdma::NodeId node) const {
  std::lock_guard lock(mutex_);
  return peers_[node].incarnation;
}

uint64_t Peers::connection(rdma::NodeId node) const {
  std::lock_guard lock(mutex_);
  return peers_[node].connection;
}

void Peers::SetForwarded(rdma::NodeId node) {
  std::lock_guard lock(mutex_);
  Peer& peer = peers_[node];
  // A node that may still be admitted, or be back, must not lose what it has locked.
  GANNET_CHECK(peer.phase == Phase::kDying && peer.admits_from == kNobody, "node %d is forwarded in phase %d", node,
               static_cast<int>(peer.phase));
  peer.phase = Phase::kForwarded;
}

void Peers::SetReleased(rdma::NodeId node) {
  std::lock_guard lock(mutex_);
  Peer& peer = peers_[node];
  GANNET_CHECK(peer.phase == Phase::kForwarded && peer.admits_from == kNobody, "node %d is released in phase %d", node,
               static_cast<int>(peer.phase));
  peer.phase = Phase::kStranger;
  peer.incarnation = 0;
  peer.connection = 0;
}

Status LockedTooLong(const LocalNode& local, const Peers& peers, uint64_t state) {
  if (!index::IsLocked(state) || rdma::IsLineBusy(state)) return ConflictAt(state);
  const rdma::NodeId holder = index::LockOwnerNode(state);
  const uint64_t lost_at = peers.lost_at(holder);
  if (lost_at == 0) return ConflictAt(state);
  Sometimes<"txn: a record is locked by a worker that is gone">();
  const absl::Duration patience = local.options.call_timeout;
  if (absl::Nanoseconds(NowNanos() - lost_at) < patience) return ConflictAt(state);
  Sometimes<"txn: a record stays locked by a worker that is gone">();
  return absl::UnavailableError(absl::StrCat("a record is still locked by worker ", index::LockOwnerChannel(state),
                                             " of node ", holder, ", which was lost more than ",
                                             absl::FormatDuration(patience), " ago"));
}

}  // namespace gannet::txn
