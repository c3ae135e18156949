// Commits that change more than one thing at other nodes: all of it is first told to one of the owners, the decider, so
// that survivors of this node's death can complete it (repair.h). This costs one call, which also does the work that
// the owner has to do itself. If there are several owners, one more call before that tells another of them, which does
// nothing yet: if the decider died together with this node, the decider's part may have been seen.
//
// From the first answer on, the transaction is committed whatever happens to this node. Until then no other transaction
// sees any of it: the install at other nodes begins after the last answer, and that at this node after all of those. If
// there is no answer, the request is a debt like every other. If it is not settled in time, the transaction continues
// without it: it is committed as long as this node lives.
#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "base/mutant.h"
#include "base/sometimes.h"
#include "txn/commit/commit.h"
#include "txn/commit/commit_internal.h"
#include "txn/peer/wire.h"
#include "txn/record/record.h"
#include "txn/session/session_state.h"

namespace gannet::txn {
namespace {

constexpr size_t kPartHeaderBytes = 32;
constexpr absl::Duration kDecideTimeout = absl::Milliseconds(100);
constexpr uint64_t kJoinAgainNanos = 200'000;

}  // namespace

rdma::NodeId Commit::OwnerOf(const WriteEntry& entry) const {
  return entry.record.is_null() ? entry.table->OwnerOf(entry.key, session_->self) : entry.record.node();
}

// A node must know the caller (peers.h) before it is asked for the first lock or placeholder.
coro::Task<Status> Commit::JoinOwners() {
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

uint64_t Commit::ConnectionOf(rdma::NodeId node) const {
  for (const WriteEntry& entry : writes_.entries()) {
    if (!entry.is_direct() && entry.kind != WriteKind::kNone && OwnerOf(entry) == node) return entry.connection;
  }
  return 0;
}

coro::Task<StatusOr<uint64_t>> Commit::Join(rdma::NodeId owner) {
  const LocalNode& local = *session_->local;
  Incarnation& self = *session_->incarnation;
  const uint64_t deadline = NowNanos() + static_cast<uint64_t>(absl::ToInt64Nanoseconds(local.options.call_timeout));
  while (true) {
    rdma::WireWriter writer(scratch_.message.room());
    writer.PutU64(self.number());
    writer.PutU64(self.next_request());
    request_ = writer.written();
    const uint64_t connection = local.node.ConnectionTo(owner);
    StatusOr<size_t> answer =
        co_await session_->channel->Call(owner, kTxnJoin, request_, {}, local.options.call_timeout, connection);
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

// The changes at other nodes take effect one after the other. True if a death could leave only a part of them.
bool Commit::NeedsDecider() const {
  if (GANNET_MUTANT(kSkipDecision)) return false;
  size_t elsewhere = 0;
  for (const WriteEntry& entry : writes_.entries()) {
    if (entry.kind == WriteKind::kNone || entry.record.node() == session_->self) continue;
    const bool written = entry.kind == WriteKind::kUpdate && entry.moved_to.is_null();
    if (++elsewhere > 1 || (written && RecordLines(entry.key, entry.payload_bytes) > 1)) return true;
  }
  return false;
}

FinishItem Commit::DecidedItemOf(WriteEntry& entry) {
  FinishItem item;
  if (FinishItemOf(entry, /*committed=*/true, &item)) return item;
  item = {.kind = FinishKind::kInstall,
          .table = entry.table->id(),
          .key = entry.key,
          .record = entry.record,
          .state = entry.seen};
  if (entry.kind == WriteKind::kUpdate) {
    BuildImage(entry);
    item.image = {entry.image, RecordLines(entry.key, entry.payload_bytes) * kLineBytes};
  }
  return item;
}

// Writes a request to `keeper` with as many of the entries `order` from `next` on as fit; returns where to continue.
// The records that it finishes go to scratch_.finished.
size_t Commit::EncodeDecision(std::span<const uint32_t> order, size_t next, rdma::NodeId keeper, bool only_note) {
  const bool first = next == 0;
  rdma::WireWriter writer(scratch_.message.room());
  const std::span<std::byte> caller = writer.Reserve(Caller::kBytes);  // more than the header of a kTxnFinishFor
  const std::span<std::byte> flags = writer.Reserve(1);
  const std::span<std::byte> parts = writer.Reserve(sizeof(uint16_t));
  const auto bytes_of = [this](const WriteEntry& entry) {
    return FinishItemBytes(RecordLines(entry.key, entry.payload_bytes) * kLineBytes);
  };
  uint16_t count = 0;
  while (next < order.size() && writer.room() >= kPartHeaderBytes + bytes_of(writes_[order[next]])) {
    const rdma::NodeId node = writes_[order[next]].record.node();
    writer.PutU16(node);
    const std::span<std::byte> size = writer.Reserve(sizeof(uint32_t));
    const size_t begin = writer.size();
    writer.PutU64(session_->owner_bits);
    const std::span<std::byte> items = writer.Reserve(sizeof(uint16_t));
    uint16_t n = 0;
    for (; next < order.size(); ++next, ++n) {
      WriteEntry& entry = writes_[order[next]];
      if (entry.record.node() != node || writer.room() < bytes_of(entry)) break;
      txn::Put(writer, DecidedItemOf(entry));
      if (node != keeper || only_note) continue;
      scratch_.finished.push_back(entry.record);
      if (!entry.moved_to.is_null()) scratch_.finished.push_back(entry.moved_to);
    }
    std::memcpy(items.data(), &n, sizeof n);
    const auto bytes = static_cast<uint32_t>(writer.size() - begin);
    std::memcpy(size.data(), &bytes, sizeof bytes);
    ++count;
  }
  flags[0] = static_cast<std::byte>((first ? kFirstOfDecision : 0) | (next == order.size() ? kLastOfDecision : 0) |
                                    (only_note ? kDecisionIsNoted : 0));
  std::memcpy(parts.data(), &count, sizeof count);
  PutCaller(caller, &scratch_.decision_slot);
  request_ = writer.written();
  return next;
}

// Sorts the entries at other nodes, the decider's first.
void Commit::OrderForDecision() {
  scratch_.decided.clear();
  for (uint32_t i = 0; i < writes_.size(); ++i) {
    const WriteEntry& entry = writes_[i];
    if (entry.kind != WriteKind::kNone && entry.record.node() != session_->self) scratch_.decided.push_back(i);
  }
  const rdma::NodeId decider = writes_[scratch_.decided.front()].record.node();
  const auto rank = [this, decider](uint32_t i) {
    const rdma::NodeId node = writes_[i].record.node();
    return node == decider ? -1 : int{node};
  };
  std::ranges::stable_sort(scratch_.decided, {}, rank);
}

// A decision of several messages is noted under one name, and stays noted until the transaction's end. So the slot
// still belongs to the transaction, or its ticket.
void Commit::OweDecision(rdma::NodeId keeper) {
  auto debt = std::make_shared<Debt>();
  debt->kind = Debt::Kind::kCall;
  debt->node = keeper;
  debt->connection = ConnectionOf(keeper);
  debt->ticket = ticket_;
  debt->method = kTxnDecide;
  debt->slot = *scratch_.decision_slot;
  debt->returns_slot = false;
  debt->message.assign(request_.begin(), request_.end());
  debt->records = scratch_.finished;
  session_->debts.Add(std::move(debt));
}

// Sends the entries of scratch_.decided. False if `keeper` cannot be told.
coro::Task<bool> Commit::TellDecision(rdma::NodeId keeper, bool only_note) {
  const absl::Duration timeout = std::min(kDecideTimeout, session_->local->options.call_timeout);
  const uint64_t connection = ConnectionOf(keeper);
  scratch_.finished.clear();
  for (size_t next = 0; next < scratch_.decided.size();) {
    next = EncodeDecision(scratch_.decided, next, keeper, only_note);
    StatusOr<size_t> answer = co_await session_->channel->Call(keeper, kTxnDecide, request_, {}, timeout, connection);
    if (answer.ok()) continue;
    // Refused. An owner only refuses a request that breaks the protocol, so no simulation reaches this.
    if (!IsUnknownOutcome(answer.status())) co_return false;
    Sometimes<"decision: the decider may have been told or not">();
    if (ticket_ == nullptr) ticket_ = std::make_shared<DebtTicket>();
    OweDecision(keeper);
    const bool settled = co_await session_->debts.Await(ticket_, DebtDeadline());
    if (!settled && ticket_->open > 0) LeaveSlot();
    if (!settled && next < scratch_.decided.size()) co_return false;
  }
  co_return true;
}

coro::Task<void> Commit::Decide() {
  OrderForDecision();
  const rdma::NodeId decider = writes_[scratch_.decided.front()].record.node();
  const rdma::NodeId second = writes_[scratch_.decided.back()].record.node();
  if (second != decider) {
    Sometimes<"decision: a second owner notes it">();
    // If the second owner cannot be told, the decision holds as long as this node or the decider lives.
    [[maybe_unused]] const bool noted = co_await TellDecision(second, /*only_note=*/true);
  }
  const bool told = co_await TellDecision(decider, /*only_note=*/false);
  if (!told) {
    Sometimes<"decision: the transaction goes on without its decider">();
    co_return;
  }
  for (const uint32_t i : scratch_.decided) {
    if (writes_[i].record.node() != decider) continue;
    writes_[i].installed = true;
    writes_[i].locked = false;
  }
}

}  // namespace gannet::txn
