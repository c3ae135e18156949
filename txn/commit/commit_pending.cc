#include "txn/commit/commit_pending.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/sometimes.h"
#include "txn/peer/wire.h"
#include "txn/record/record.h"
#include "txn/session/session_state.h"

namespace gannet::txn {

std::shared_ptr<PendingOperation> CommitPending::PendingOfCall(rdma::NodeId node, rdma::MethodId method, uint16_t slot,
                                                               std::span<const std::byte> message) {
  auto pending = std::make_shared<PendingOperation>();
  pending->kind = PendingOperation::Kind::kCall;
  pending->node = node;
  pending->connection = links_.ConnectionOf(node);
  pending->group = group_;
  pending->method = method;
  pending->slot = slot;
  pending->message.assign(message.begin(), message.end());
  return pending;
}

std::shared_ptr<PendingOperation> CommitPending::PendingOfRecord(PendingOperation::Kind kind, const WriteEntry& entry,
                                                                 uint64_t next) {
  auto pending = std::make_shared<PendingOperation>();
  pending->kind = kind;
  pending->node = entry.record.node();
  pending->connection = entry.connection;
  pending->record = entry.record;
  pending->held = Locked(entry.seen, session_->owner_bits);
  pending->next = next;
  return pending;
}

void CommitPending::OweCall(OwnerCall* call, rdma::MethodId method, std::span<const std::byte> message) {
  std::shared_ptr<PendingOperation> pending = PendingOfCall(call->node, method, *call->slot, message);
  call->slot.reset();
  if (method == kTxnFinish) pending->records = call->finished;
  session_->pending.Add(std::move(pending));
}

void CommitPending::OweDecision(rdma::NodeId keeper, std::span<const std::byte> message,
                                std::span<const rdma::GlobalAddress> finished) {
  std::shared_ptr<PendingOperation> pending = PendingOfCall(keeper, kTxnDecide, *decision_slot_, message);
  pending->returns_slot = false;
  pending->records.assign(finished.begin(), finished.end());
  session_->pending.Add(std::move(pending));
}

void CommitPending::OweUnlock(const WriteEntry& entry) {
  session_->pending.Add(PendingOfRecord(PendingOperation::Kind::kUnlock, entry, entry.seen));
}

void CommitPending::OweInstall(const WriteEntry& entry) {
  // Without a group, nothing would wait for the install.
  GANNET_CHECK(group_ != nullptr, "the install of %s is owed without a group", entry.record.ToString());
  std::shared_ptr<PendingOperation> pending =
      PendingOfRecord(PendingOperation::Kind::kInstall, entry, NextState(entry.seen, false));
  pending->group = group_;
  if (entry.kind == WriteKind::kUpdate) {
    pending->image.assign(entry.image, entry.image + RecordLines(entry.key, entry.payload_bytes) * kLineBytes);
  }
  session_->pending.Add(std::move(pending));
}

uint64_t CommitPending::Deadline() const {
  if (redo_.logged()) return UINT64_MAX;
  return NowNanos() + static_cast<uint64_t>(absl::ToInt64Nanoseconds(session_->local->options.call_timeout));
}

// The transaction continues, or ends, while not all pending operations of its group are settled. Its decision stays
// noted as long as an owner may need it.
void CommitPending::LeaveSlot() {
  if (decision_slot_.has_value()) session_->pending.KeepNoted(group_.get(), *decision_slot_);
  decision_slot_.reset();
}

coro::Task<Status> CommitPending::Await(Status first_error) {
  if (group_ != nullptr) {
    const bool done = co_await session_->pending.Await(group_, Deadline());
    if (done) Sometimes<"commit: what was owed after the commit point is done in time">();
    if (!done) LeaveSlot();
    if (!done && first_error.ok()) first_error = absl::UnavailableError("it died, or cannot be reached");
  }
  if (first_error.ok()) co_return first_error;
  Sometimes<"commit: the outcome is Unknown because a node did not take its part">();
  co_return absl::UnknownError(
      absl::StrCat("the transaction passed its commit point, but a node did not take its part: ",
                   absl::string_view(first_error.message())));
}

coro::Task<bool> CommitPending::AwaitDecision() {
  const bool settled = co_await session_->pending.Await(group_, Deadline());
  if (!settled && group_->open > 0) LeaveSlot();
  co_return settled;
}

}  // namespace gannet::txn
