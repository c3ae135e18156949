#include "txn/commit/commit_debts.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/sometimes.h"
#include "txn/peer/wire.h"
#include "txn/record/record.h"
#include "txn/session/session_state.h"

namespace gannet::txn {

std::shared_ptr<Debt> CommitDebts::DebtOfCall(rdma::NodeId node, rdma::MethodId method, uint16_t slot,
                                              std::span<const std::byte> message) {
  auto debt = std::make_shared<Debt>();
  debt->kind = Debt::Kind::kCall;
  debt->node = node;
  debt->connection = links_.ConnectionOf(node);
  debt->ticket = ticket_;
  debt->method = method;
  debt->slot = slot;
  debt->message.assign(message.begin(), message.end());
  return debt;
}

std::shared_ptr<Debt> CommitDebts::DebtOfRecord(Debt::Kind kind, const WriteEntry& entry, uint64_t next) {
  auto debt = std::make_shared<Debt>();
  debt->kind = kind;
  debt->node = entry.record.node();
  debt->connection = entry.connection;
  debt->record = entry.record;
  debt->held = Locked(entry.seen, session_->owner_bits);
  debt->next = next;
  return debt;
}

void CommitDebts::OweCall(OwnerCall* call, rdma::MethodId method, std::span<const std::byte> message) {
  std::shared_ptr<Debt> debt = DebtOfCall(call->node, method, *call->slot, message);
  call->slot.reset();
  if (method == kTxnFinish) debt->records = call->finished;
  session_->debts.Add(std::move(debt));
}

void CommitDebts::OweDecision(rdma::NodeId keeper, std::span<const std::byte> message,
                              std::span<const rdma::GlobalAddress> finished) {
  std::shared_ptr<Debt> debt = DebtOfCall(keeper, kTxnDecide, *decision_slot_, message);
  debt->returns_slot = false;
  debt->records.assign(finished.begin(), finished.end());
  session_->debts.Add(std::move(debt));
}

void CommitDebts::OweUnlock(const WriteEntry& entry) {
  session_->debts.Add(DebtOfRecord(Debt::Kind::kUnlock, entry, entry.seen));
}

void CommitDebts::OweInstall(const WriteEntry& entry) {
  // Without a ticket, nothing would wait for the install.
  GANNET_CHECK(ticket_ != nullptr, "the install of %s is owed without a ticket", entry.record.ToString());
  std::shared_ptr<Debt> debt = DebtOfRecord(Debt::Kind::kInstall, entry, NextState(entry.seen, false));
  debt->ticket = ticket_;
  if (entry.kind == WriteKind::kUpdate) {
    debt->image.assign(entry.image, entry.image + RecordLines(entry.key, entry.payload_bytes) * kLineBytes);
  }
  session_->debts.Add(std::move(debt));
}

uint64_t CommitDebts::Deadline() const {
  if (redo_.logged()) return UINT64_MAX;
  return NowNanos() + static_cast<uint64_t>(absl::ToInt64Nanoseconds(session_->local->options.call_timeout));
}

// The transaction continues, or ends, while debts of its ticket are open. Its decision stays noted until they are
// settled.
void CommitDebts::LeaveSlot() {
  if (decision_slot_.has_value()) ticket_->slots.push_back(*decision_slot_);
  decision_slot_.reset();
}

coro::Task<Status> CommitDebts::Await(Status first_error) {
  if (ticket_ != nullptr) {
    const bool done = co_await session_->debts.Await(ticket_, Deadline());
    if (done) Sometimes<"commit: what was owed after the commit point is done in time">();
    // A decision must stay noted until it is carried out.
    if (!done && ticket_->open > 0) LeaveSlot();
    if (!done && first_error.ok()) first_error = absl::UnavailableError("it died, or cannot be reached");
  }
  if (first_error.ok()) co_return first_error;
  Sometimes<"commit: the outcome is Unknown because a node did not take its part">();
  co_return absl::UnknownError(
      absl::StrCat("the transaction passed its commit point, but a node did not take its part: ",
                   absl::string_view(first_error.message())));
}

coro::Task<bool> CommitDebts::AwaitDecision() {
  const bool settled = co_await session_->debts.Await(ticket_, Deadline());
  if (!settled && ticket_->open > 0) LeaveSlot();
  co_return settled;
}

}  // namespace gannet::txn
