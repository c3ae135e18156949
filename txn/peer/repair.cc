#include "txn/peer/repair.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include "base/clock.h"
#include "base/mutant.h"
#include "base/sometimes.h"
#include "index/claim_boards.h"
#include "rdma/rpc.h"
#include "txn/node/local_node.h"
#include "txn/peer/incarnation.h"
#include "txn/peer/owner_service.h"
#include "txn/peer/peers.h"
#include "txn/peer/pending_operation.h"
#include "txn/peer/wire.h"
#include "txn/store/event.h"

namespace gannet::txn {
namespace {

constexpr absl::Duration kLookEvery = absl::Milliseconds(10);
constexpr absl::Duration kTryAgainAfter = absl::Milliseconds(1);
// Calls can be repeated, so they have a shorter timeout than others.
constexpr absl::Duration kCallTimeout = absl::Milliseconds(100);
constexpr size_t kHeaderBytes = 32;  // of a kTxnFinishFor

}  // namespace

Repairer::Repairer(const LocalNode* local, Peers* peers, OwnerService* owner, const Incarnation* incarnation)
    : local_(local), peers_(peers), owner_(owner), incarnation_(incarnation) {}

void Repairer::Start() {
  Look();  // so that the loss of a node that was there before is noticed, however soon it comes
  thread_ = Thread("repair", [this] { Loop(); });
}

void Repairer::Stop() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Repairer::Wake() {
  {
    std::lock_guard lock(mutex_);
    woken_ = true;
  }
  wake_.notify_all();
}

void Repairer::StopTelling() {
  std::lock_guard lock(telling_);
  tells_ = false;
}

bool Repairer::Stopped() const {
  std::lock_guard lock(mutex_);
  return stop_ || !local_->fabric.Alive(local_->id());
}

void Repairer::Loop() {
  bool more = true;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, more ? kTryAgainAfter : kLookEvery, [this] { return stop_ || woken_; });
      woken_ = false;
      if (stop_) break;
    }
    Look();
    more = Round();
  }
  worker_.reset();
  channel_.reset();
}

void Repairer::Look() {
  const uint64_t now = NowNanos();
  const int nodes = local_->fabric.num_nodes();
  for (int i = 0; i < nodes; ++i) {
    const auto node = static_cast<rdma::NodeId>(i);
    const auto present = [&] { return local_->node.ConnectionTo(node); };
    if (peers_->NoteConnection(node, present, now)) TellOfLoss(node);
  }
}

void Repairer::TellOfLoss(rdma::NodeId node) {
  if (node == local_->id()) return;
  std::lock_guard lock(telling_);
  if (!tells_) return;
  const bool has_rows = node < local_->data_nodes;
  Tell(local_->options, EventLevel::kWarning, "node ", local_->id(), ": node ", node, " has left or is lost; ",
       has_rows ? "its rows are unavailable, and " : "", "what it held here is released");
}

bool Repairer::ReleaseDead() {
  const int nodes = local_->fabric.num_nodes();
  for (int i = 0; i < nodes; ++i) {
    const auto node = static_cast<rdma::NodeId>(i);
    if (node == local_->id() || GANNET_MUTANT(kSkipRepair)) continue;
    if (!local_->fabric.Alive(node) || peers_->IsLost(node, local_->node.ConnectionTo(node))) peers_->NoteDeath(node);
    ReleaseIndexes(node);
  }
  return !Stopped();
}

// The locks that nodes hold in indexes are released before anything else: to take a key of one dead node out of a leaf
// may need the lock that another one holds there.
bool Repairer::Round() {
  bool more = false;
  const int nodes = local_->fabric.num_nodes();
  for (int i = 0; i < nodes; ++i) {
    const auto node = static_cast<rdma::NodeId>(i);
    if (peers_->phase(node) != Peers::Phase::kAccused) continue;
    SometimesInTests<"repair: a node is accused of being dead by another">();
    if (local_->node.CutOff(node, peers_->connection(node))) peers_->NoteDeath(node);
  }
  ReleaseDead();
  for (int i = 0; i < nodes && !Stopped(); ++i) {
    const auto node = static_cast<rdma::NodeId>(i);
    if (node == local_->id() || GANNET_MUTANT(kSkipRepair)) continue;
    const bool has_no_claims = EndClaims(node);
    more = more || local_->indexes.boards().IsLost(node);
    ReleaseIndexes(node);  // its successor may have come since
    if (peers_->phase(node) == Peers::Phase::kDying && has_no_claims && Forward(node)) peers_->SetForwarded(node);
    if (peers_->phase(node) == Peers::Phase::kForwarded && OthersHaveForwarded(node) &&
        owner_->ReleaseAllOf(node, [this] { return Stopped(); })) {
      Sometimes<"repair: what a dead node held is released">();
      const std::lock_guard lock(releasing_);
      indexes_released_[node] = false;
      peers_->SetReleased(node);
    }
    const Peers::Phase phase = peers_->phase(node);
    more = more || (phase != Peers::Phase::kStranger && phase != Peers::Phase::kJoined);
  }
  if (!AnnounceAll()) more = true;
  if (!more) {
    worker_.reset();
    channel_.reset();
  }
  return more;
}

void Repairer::ReleaseIndexes(rdma::NodeId dead) {
  const std::lock_guard lock(releasing_);
  // Another thread may have found the node dead, and then it was released, and has joined again.
  const Peers::Phase phase = peers_->phase(dead);
  if (phase != Peers::Phase::kDying && phase != Peers::Phase::kForwarded) return;
  indexes_released_.resize(static_cast<size_t>(local_->fabric.num_nodes()));
  if (indexes_released_[dead]) return;
  owner_->ReleaseIndexesOf(dead);
  indexes_released_[dead] = true;
}

bool Repairer::EndClaims(rdma::NodeId node) {
  const index::ClaimBoards& boards = local_->indexes.boards();
  if (!boards.IsLost(node)) return true;  // what it holds, if anything, it holds by the present connection
  if (!boards.IsTermOver(node)) return false;
  const Status ended = owner_->EndClaimsOf(node);
  if (ended.ok()) Sometimes<"repair: the claims of a lost node are ended">();
  return ended.ok();
}

bool Repairer::AnnounceAll() {
  bool all = true;
  const int nodes = local_->fabric.num_nodes();
  announced_.resize(static_cast<size_t>(nodes));
  for (int i = 0; i < nodes && !Stopped(); ++i) {
    const auto node = static_cast<rdma::NodeId>(i);
    if (node == local_->id()) continue;
    const uint64_t connection = local_->node.ConnectionTo(node);
    if (connection == 0 || announced_[node] == connection) continue;
    std::array<std::byte, 16> request;
    rdma::WireWriter writer(request);
    writer.PutU64(incarnation_->number());
    writer.PutU64(0);  // it asks for no locks yet
    const bool told = Call(node, kTxnJoin, writer.written(), {}, connection).ok();
    if (told) announced_[node] = connection;
    all = all && told;
  }
  return all;
}

bool Repairer::Forward(rdma::NodeId dead) {
  // Its requests may wait for the lock of another dead node.
  if (!peers_->IsQuiet(dead)) return false;
  if (GANNET_MUTANT(kRepairUndecided)) return true;
  for (const DecidedWork& work : owner_->DecidedBy(dead)) {
    if (work.node == dead) continue;
    if (work.node == local_->id()) {
      Sometimes<"repair: a decided transaction of a dead node is carried out here">();
      static_cast<void>(owner_->FinishWork(work.message));  // an error: no repetition will change it
      continue;
    }
    std::vector<std::byte> request(work.message.size() + kHeaderBytes);
    rdma::WireWriter writer(request);
    writer.PutU16(dead);
    writer.PutU64(peers_->incarnation(dead));
    writer.PutBytes(work.message);
    Sometimes<"repair: a decided transaction of a dead node is sent to an owner">();
    if (Send(work.node, writer.written())) continue;
    Sometimes<"repair: an owner cannot be told of what a dead node decided">();
    return false;
  }
  return true;
}

bool Repairer::Send(rdma::NodeId to, std::span<const std::byte> request) {
  if (!local_->fabric.Alive(to)) return true;
  const Status status = Call(to, kTxnFinishFor, request, {}).status();
  return !IsUnknownOutcome(status) || !local_->fabric.Alive(to);
}

bool Repairer::OthersHaveForwarded(rdma::NodeId dead) {
  if (GANNET_MUTANT(kRepairUndecided)) return true;
  for (int i = 0; i < local_->data_nodes; ++i) {  // decisions are noted at owners of rows
    const auto node = static_cast<rdma::NodeId>(i);
    if (node == local_->id() || node == dead || !local_->fabric.Alive(node)) continue;
    std::array<std::byte, 16> request;
    rdma::WireWriter writer(request);
    writer.PutU16(dead);
    writer.PutU64(peers_->incarnation(dead));
    std::array<std::byte, 8> answer{};
    const StatusOr<size_t> size = Call(node, kTxnForwarded, writer.written(), answer);
    if (size.ok() ? answer[0] != std::byte{0} : !local_->fabric.Alive(node)) continue;
    Sometimes<"repair: another owner has not forwarded all yet">();
    return false;
  }
  return true;
}

StatusOr<size_t> Repairer::Call(rdma::NodeId to, rdma::MethodId method, std::span<const std::byte> request,
                                std::span<std::byte> response, uint64_t connection) {
  if (channel_ == nullptr) {
    StatusOr<std::unique_ptr<rdma::Channel>> channel = local_->node.OpenChannel();
    if (!channel.ok()) return absl::UnavailableError(channel.status().message());
    channel_ = *std::move(channel);
    worker_ = std::make_unique<coro::Worker>();
    worker_->AddPoller([c = channel_.get()] { return c->Poll(); });
  }
  const rdma::CallRequest call{.node = to,
                               .method = method,
                               .request = request,
                               .response = response,
                               .timeout = std::min(kCallTimeout, local_->options.call_timeout),
                               .connection = connection};
  const auto ask = [](rdma::Channel* channel, const rdma::CallRequest& what) -> coro::Task<StatusOr<size_t>> {
    co_return co_await channel->Call(what.node, what.method, what.request, what.response, what.timeout,
                                     what.connection);
  };
  return worker_->BlockOn(ask(channel_.get(), call));
}

}  // namespace gannet::txn
