#include "txn/session/debts.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/sometimes.h"
#include "txn/peer/debt_collector.h"
#include "txn/session/session_state.h"

namespace gannet::txn {
namespace {

constexpr uint64_t kLookAgainNanos = 50'000;

}  // namespace

bool Debts::Covers(rdma::GlobalAddress record) const {
  return std::ranges::any_of(debts_, [record](const std::shared_ptr<Debt>& debt) { return debt->IsOf(record); });
}

bool Debts::MustWait(const Debt& debt) const {
  return debt.kind == Debt::Kind::kUnlock &&
         std::ranges::any_of(session_->transactions,
                             [&debt](const OpenTransaction* transaction) { return transaction->MayHold(debt.record); });
}

void Debts::Add(std::shared_ptr<Debt> debt) {
  debt->owner_bits = session_->owner_bits;
  debt->since = NowNanos();
  if (debt->ticket != nullptr) ++debt->ticket->open;
  if (!NodeLives(*debt, *session_->local)) return Close(*debt, /*lost=*/true);
  debts_.push_back(debt);
  debt->held_back = MustWait(*debt);
  if (!debt->held_back) return session_->collector->Take(std::move(debt));
  Sometimes<"debts: an unlock waits for a transaction that may hold the lock">();
  ++held_back_;
}

void Debts::HandOver() {
  for (const std::shared_ptr<Debt>& debt : debts_) {
    if (!debt->held_back || MustWait(*debt)) continue;
    debt->held_back = false;
    --held_back_;
    session_->collector->Take(debt);
  }
}

void Debts::Forget() {
  std::erase_if(debts_, [this](const std::shared_ptr<Debt>& debt) {
    // Acquire: what the collector did for this debt is complete.
    const Debt::Outcome outcome = debt->outcome.load(std::memory_order_acquire);
    if (outcome == Debt::Outcome::kOpen) return false;
    Close(*debt, /*lost=*/outcome == Debt::Outcome::kLost);
    return true;
  });
}

void Debts::Close(Debt& debt, bool lost) {
  if (debt.ticket != nullptr) {
    --debt.ticket->open;
    debt.ticket->lost = debt.ticket->lost || lost;
    if (debt.ticket->open == 0) {
      for (const uint16_t slot : std::exchange(debt.ticket->slots, {})) ReturnSlot(slot);
    }
  }
  if (debt.kind == Debt::Kind::kCall && debt.returns_slot) ReturnSlot(debt.slot);
}

coro::Task<bool> Debts::Await(std::shared_ptr<DebtTicket> ticket, uint64_t deadline_nanos) {
  for (Forget(); ticket->open > 0 && NowNanos() < deadline_nanos; Forget()) {
    co_await session_->worker.SleepUntil(NowNanos() + kLookAgainNanos);
  }
  co_return ticket->open == 0 && !ticket->lost;
}

uint16_t Debts::TakeSlot() {
  if (free_slots_.empty()) return next_slot_++;
  const uint16_t slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

std::vector<std::shared_ptr<Debt>> Debts::Leave() {
  HandOver();
  Forget();
  for (const std::shared_ptr<Debt>& debt : debts_) {
    GANNET_CHECK(!debt->held_back, "a session was closed before its transactions");
    Sometimes<"debts: a session leaves one to the next">();
  }
  return std::exchange(debts_, {});
}

void Debts::TakeOver(std::vector<std::shared_ptr<Debt>> debts) {
  debts_ = std::move(debts);
  std::vector<uint16_t> used;
  for (const std::shared_ptr<Debt>& debt : debts_) {
    if (debt->kind == Debt::Kind::kCall) used.push_back(debt->slot);
    if (debt->ticket != nullptr) used.insert(used.end(), debt->ticket->slots.begin(), debt->ticket->slots.end());
  }
  if (used.empty()) return;
  next_slot_ = static_cast<uint16_t>(std::ranges::max(used) + 1);
  for (uint16_t slot = 0; slot < next_slot_; ++slot) {
    if (std::ranges::find(used, slot) == used.end()) free_slots_.push_back(slot);
  }
}

}  // namespace gannet::txn
