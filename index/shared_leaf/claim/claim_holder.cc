#include "index/shared_leaf/claim/claim_holder.h"

#include <algorithm>
#include <mutex>

#include "base/clock.h"
#include "base/coro/worker.h"
#include "base/mutant.h"
#include "rdma/rpc.h"

namespace gannet::index::shared_leaf {

ClaimHolder::ClaimHolder(rdma::Node* node, std::byte* board, uint64_t process)
    : node_(node),
      board_(board),
      process_(process),
      memory_(std::make_unique<std::array<std::atomic<uint64_t>, kMostLeases>>()),
      ends_(*memory_),
      pauses_(std::make_unique<Pause[]>(kPauses)) {}

Lease ClaimHolder::KnownLease(rdma::NodeId owner) const {
  const std::lock_guard lock(mutex_);
  if (owner >= leases_.size() || leases_[owner].connection != node_->ConnectionTo(owner)) return {};
  return leases_[owner];
}

coro::Task<Lease> ClaimHolder::LeaseFrom(rdma::Channel* channel, rdma::NodeId owner, absl::Duration timeout) {
  if (const Lease known = KnownLease(owner); known.connection != 0) co_return known;
  const uint64_t connection = node_->ConnectionTo(owner);
  if (connection == 0) co_return Lease{};
  const Status told = co_await Tell(channel, owner, node_->AddressOf(board_), timeout, connection);
  if (!told.ok()) co_return Lease{};
  const std::lock_guard lock(mutex_);
  if (connection != node_->ConnectionTo(owner)) co_return Lease{};  // another thread may have told a later one
  if (leases_.size() <= owner) leases_.resize(size_t{owner} + 1);
  Lease& lease = leases_[owner];
  if (lease.connection != connection) {
    // Copies that were claimed over the connection before keep that lease, which nobody renews any more.
    const bool is_left = last_ + 1u < kMostLeases;
    lease = {.number = is_left ? ++last_ : uint16_t{0}, .connection = connection};
  }
  co_return lease;
}

coro::Task<Status> ClaimHolder::Tell(rdma::Channel* channel, rdma::NodeId owner, rdma::GlobalAddress board,
                                     absl::Duration timeout, uint64_t connection) {
  std::array<std::byte, 2 * kWordBytes> request;
  rdma::WireWriter writer(request);
  writer.PutU64(process_);
  writer.PutAddress(board);
  const StatusOr<size_t> told =
      co_await channel->Call(owner, kTellBoard, writer.written(), std::span<std::byte>(), timeout, connection);
  co_return told.status();
}

void ClaimHolder::Leave() {
  constexpr absl::Duration kTimeout = absl::Milliseconds(100);
  std::vector<Lease> leases;
  {
    const std::lock_guard lock(mutex_);
    leases = leases_;
  }
  std::unique_ptr<rdma::Channel> channel;
  coro::Worker worker;
  for (size_t i = 0; i < leases.size(); ++i) {
    const auto owner = static_cast<rdma::NodeId>(i);
    const uint64_t connection = leases[i].connection;
    if (owner == node_->id() || connection == 0 || connection != node_->ConnectionTo(owner)) continue;
    if (channel == nullptr) {
      StatusOr<std::unique_ptr<rdma::Channel>> opened = node_->OpenChannel();
      if (!opened.ok()) return;
      channel = *std::move(opened);
      worker.AddPoller([&channel] { return channel->Poll(); });
    }
    worker.BlockOn(Tell(channel.get(), owner, {}, kTimeout, connection)).IgnoreError();
  }
}

void ClaimHolder::Renew(uint16_t lease, uint64_t posted_nanos) {
  const uint64_t end = posted_nanos + NanosOf(kClaimLease);
  std::atomic<uint64_t>& known = ends_[lease];
  uint64_t old = known.load(std::memory_order_relaxed);
  while (old < end && !known.compare_exchange_weak(old, end, std::memory_order_acq_rel)) {
  }
}

void ClaimHolder::PauseFor(rdma::GlobalAddress leaf, uint32_t longest) {
  Pause& pause = PauseOf(leaf);
  const uint64_t now = NowNanos();
  const uint64_t until = pause.until.load(std::memory_order_relaxed);
  if (now < until) return;
  // If nothing was ended for a long time after the last pause, the first pause is short again.
  const uint32_t last = pause.nanos.load(std::memory_order_relaxed);
  const bool is_quiet = now - until > 10 * uint64_t{longest};
  const uint64_t twice = uint64_t{2} * last;
  const auto nanos =
      is_quiet || last == 0 ? kFirstPauseNanos : static_cast<uint32_t>(std::min<uint64_t>(twice, longest));
  pause.nanos.store(nanos, std::memory_order_relaxed);
  pause.until.store(now + nanos, std::memory_order_relaxed);
}

bool ClaimHolder::MayClaim(rdma::GlobalAddress leaf) const {
  return NowNanos() >= PauseOf(leaf).until.load(std::memory_order_relaxed) || GANNET_MUTANT(kGreedy);
}

}  // namespace gannet::index::shared_leaf
