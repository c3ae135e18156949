#include "txn/commit/owner_links.h"

#include "base/clock.h"
#include "base/sometimes.h"
#include "rdma/rpc.h"
#include "txn/peer/incarnation.h"
#include "txn/peer/wire.h"
#include "txn/session/session_state.h"

namespace gannet::txn {
namespace {

constexpr uint64_t kJoinAgainNanos = 200'000;

}  // namespace

rdma::NodeId OwnerLinks::OwnerOf(const WriteEntry& entry) const {
  return entry.record.is_null() ? entry.table->OwnerOf(entry.key, session_->self) : entry.record.node();
}

coro::Task<Status> OwnerLinks::JoinAll() {
  const Incarnation& self = *session_->incarnation;
  for (WriteEntry& entry : writes_.entries()) {
    if (entry.is_direct() || entry.kind == WriteKind::kNone) continue;
    const rdma::NodeId owner = OwnerOf(entry);
    if (owner == session_->self) continue;
    entry.connection = self.JoinedBy(owner);
    if (entry.connection != 0 && entry.connection == session_->local->node.ConnectionTo(owner)) continue;
    StatusOr<uint64_t> joined = co_await Join(owner);
    if (!joined.ok()) co_return joined.status();
    entry.connection = *joined;
  }
  co_return absl::OkStatus();
}

uint64_t OwnerLinks::ConnectionOf(rdma::NodeId node) const {
  for (const WriteEntry& entry : writes_.entries()) {
    if (!entry.is_direct() && entry.kind != WriteKind::kNone && OwnerOf(entry) == node) return entry.connection;
  }
  return 0;
}

coro::Task<StatusOr<uint64_t>> OwnerLinks::Join(rdma::NodeId owner) {
  const LocalNode& local = *session_->local;
  Incarnation& self = *session_->incarnation;
  const uint64_t deadline = NowNanos() + static_cast<uint64_t>(absl::ToInt64Nanoseconds(local.options.call_timeout));
  while (true) {
    rdma::WireWriter writer(message_.room());
    writer.PutU64(self.number());
    writer.PutU64(self.next_request());
    const std::span<const std::byte> request = writer.written();
    const uint64_t connection = local.node.ConnectionTo(owner);
    StatusOr<size_t> answer =
        co_await session_->channel->Call(owner, kTxnJoin, request, {}, local.options.call_timeout, connection);
    if (answer.ok() && connection != 0) {
      self.NoteJoined(owner, connection);
      co_return connection;
    }
    if (!answer.ok() && (!IsUnknownOutcome(answer.status()) || !local.fabric.Alive(owner) || NowNanos() >= deadline)) {
      Sometimes<"decision: an owner does not let this node join">();
      co_return answer.status();
    }
    Sometimes<"decision: an owner is asked again to let this node join">();
    co_await session_->worker.SleepUntil(NowNanos() + kJoinAgainNanos);
  }
}

std::span<OwnerCall> OwnerLinks::Calls() {
  if (calls_.empty()) {
    calls_ = std::vector<OwnerCall>(static_cast<size_t>(session_->local->data_nodes));
    for (size_t node = 0; node < calls_.size(); ++node) {
      calls_[node].node = static_cast<rdma::NodeId>(node);
    }
  }
  return calls_;
}

void OwnerLinks::PutCaller(std::span<std::byte> place, std::optional<uint16_t>* slot) {
  if (!slot->has_value()) *slot = session_->pending.TakeSlot();
  rdma::WireWriter writer(place);
  txn::Put(writer, Caller{.name = Caller::NameOf(session_->owner_bits, **slot),
                          .number = session_->incarnation->NextRequest()});
}

coro::Task<StatusOr<size_t>> OwnerLinks::Send(OwnerCall* call, rdma::MethodId method, std::span<std::byte> response,
                                              absl::Duration timeout) {
  co_return co_await session_->channel->Call(call->node, method, call->request, response, timeout,
                                             ConnectionOf(call->node));
}

}  // namespace gannet::txn
