#include "txn/commit/debts.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/clock.h"
#include "base/sometimes.h"
#include "txn/session/session_internal.h"
#include "txn/session/transaction_impl.h"

namespace gannet::txn {
namespace {

constexpr uint64_t kFirstPauseNanos = 10'000;
constexpr uint64_t kLongestPauseNanos = 1'000'000;
// First timeout of a call for a debt; it doubles. It is short, because a repetition does no harm.
constexpr uint64_t kFirstTimeoutNanos = 2'000'000;
constexpr uint64_t kLookAgainNanos = 50'000;

uint64_t PatienceOf(const SessionState& session) {
  return static_cast<uint64_t>(absl::ToInt64Nanoseconds(session.local->options.call_timeout));
}

}  // namespace

bool IsUnknownOutcome(const Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

bool Debts::Covers(rdma::GlobalAddress record) const {
  return std::ranges::any_of(debts_, [record](const std::shared_ptr<Debt>& debt) {
    return debt->record == record || std::ranges::find(debt->records, record) != debt->records.end();
  });
}

bool Debts::MustWait(const Debt& debt) const {
  if (debt.kind != Debt::Kind::kUnlock) return false;
  for (const TransactionImpl* transaction : session_->transactions) {
    if (transaction->MayHold(debt.record)) return true;
  }
  return std::ranges::any_of(debts_, [&debt](const std::shared_ptr<Debt>& other) {
    return other->kind != Debt::Kind::kUnlock &&
           (other->record == debt.record || std::ranges::find(other->records, debt.record) != other->records.end());
  });
}

bool Debts::NodeLives(const Debt& debt) const {
  const rdma::Fabric& fabric = session_->local->fabric;
  return fabric.Alive(debt.node) && fabric.Alive(session_->self) &&
         (debt.connection == 0 || session_->local->node.ConnectionTo(debt.node) == debt.connection);
}

void Debts::Add(Debt debt) {
  if (debt.ticket != nullptr) ++debt.ticket->open;
  debts_.push_back(std::make_shared<Debt>(std::move(debt)));
  const std::shared_ptr<Debt> added = debts_.back();
  if (!NodeLives(*added)) return Close(added, /*lost=*/true);
  Start(added);
}

void Debts::Start(const std::shared_ptr<Debt>& debt) {
  debt->running = true;
  session_->worker.Spawn(Settle(debt));
}

bool Debts::OthersRun() const {
  const auto ours = std::ranges::count_if(debts_, [](const std::shared_ptr<Debt>& debt) { return debt->running; });
  return session_->worker.unfinished() > static_cast<size_t>(ours);
}

void Debts::Awaken() {
  for (const std::shared_ptr<Debt>& debt : debts_) {
    if (!debt->running) Start(debt);
  }
}

void Debts::Close(const std::shared_ptr<Debt>& debt, bool lost) {
  if (debt->ticket != nullptr) {
    --debt->ticket->open;
    debt->ticket->lost = debt->ticket->lost || lost;
    if (debt->ticket->open == 0) {
      for (const uint16_t slot : std::exchange(debt->ticket->slots, {})) ReturnSlot(slot);
    }
  }
  if (debt->kind == Debt::Kind::kCall && debt->returns_slot) ReturnSlot(debt->slot);
  const Debt* const closed = debt.get();
  std::erase_if(debts_, [closed](const std::shared_ptr<Debt>& each) { return each.get() == closed; });
}

coro::Task<void> Debts::Settle(std::shared_ptr<Debt> debt) {
  const uint64_t rests_at = NowNanos() + PatienceOf(*session_);
  uint64_t timeout = kFirstTimeoutNanos;
  for (uint64_t pause = kFirstPauseNanos;; pause = std::min(2 * pause, kLongestPauseNanos)) {
    if (!NodeLives(*debt)) {
      Sometimes<"debts: the node that something is owed to dies">();
      Close(debt, /*lost=*/true);
      co_return;
    }
    if (MustWait(*debt)) {
      Sometimes<"debts: an unlock waits for a transaction that may hold the lock">();
    } else {
      bool settled = false;
      if (debt->kind == Debt::Kind::kUnlock) {
        settled = co_await Unlock(debt);
      } else if (debt->kind == Debt::Kind::kInstall) {
        settled = co_await Install(debt);
      } else {
        settled = co_await Call(debt, timeout);
        timeout = std::min(2 * timeout, std::max(PatienceOf(*session_), kFirstTimeoutNanos));
      }
      if (settled) {
        Sometimes<"debts: one is settled">();
        Close(debt, /*lost=*/false);
        co_return;
      }
    }
    if (NowNanos() >= rests_at && !OthersRun()) {
      Sometimes<"debts: one rests until the session works again">();
      debt->running = false;
      co_return;
    }
    co_await session_->worker.SleepUntil(NowNanos() + pause);
  }
}

coro::Task<bool> Debts::Unlock(std::shared_ptr<Debt> debt) {
  std::array<rdma::Operation, 1> swap{rdma::Operation::CompareAndSwap(debt->record, debt->held, debt->next)};
  swap[0].connection = debt->connection;
  const Status swapped = co_await session_->channel->Post(swap);
  co_return swapped.ok() && swap[0].result != rdma::kLineBusy;
}

coro::Task<bool> Debts::Install(std::shared_ptr<Debt> debt) {
  uint64_t word = 0;
  std::array<rdma::Operation, 1> look{rdma::Operation::Read(debt->record, &word, sizeof word)};
  look[0].connection = debt->connection;
  const Status read = co_await session_->channel->Post(look);
  if (!read.ok() || word == rdma::kLineBusy) co_return false;
  if (word != debt->held) {
    Sometimes<"debts: an install had been done">();
    co_return true;
  }
  Sometimes<"debts: an install is repeated">();
  // As in Commit::InstallRemote: the image of several lines leaves the first one locked.
  std::array<rdma::Operation, 2> operations;
  size_t n = 0;
  if (!debt->image.empty()) {
    operations[n++] =
        rdma::Operation::Write(debt->image.data(), debt->record, static_cast<uint32_t>(debt->image.size()));
  }
  if (debt->image.size() != kLineBytes) {
    operations[n++] = rdma::Operation::Write(&debt->next, debt->record, sizeof debt->next);
  }
  for (rdma::Operation& operation : operations) operation.connection = debt->connection;
  const std::span<rdma::Operation> batch(operations.data(), n);
  const Status written = co_await session_->channel->Post(batch);
  co_return written.ok();
}

coro::Task<bool> Debts::Call(std::shared_ptr<Debt> debt, uint64_t timeout_nanos) {
  const absl::Duration timeout = absl::Nanoseconds(static_cast<int64_t>(timeout_nanos));
  const StatusOr<size_t> answer =
      co_await session_->channel->Call(debt->node, debt->method, debt->message, {}, timeout, debt->connection);
  if (!answer.ok() && IsUnknownOutcome(answer.status())) co_return false;
  // Refused. An owner that follows the protocol does not refuse a debt: the slot belongs to the debt, so nothing newer
  // overtakes it, and the records in it are locked by this session. So no simulation reaches this.
  if (!answer.ok() && debt->ticket != nullptr) debt->ticket->lost = true;
  co_return true;
}

coro::Task<bool> Debts::Await(std::shared_ptr<DebtTicket> ticket, uint64_t deadline_nanos) {
  while (ticket->open > 0 && NowNanos() < deadline_nanos) {
    Awaken();
    co_await session_->worker.SleepUntil(NowNanos() + kLookAgainNanos);
  }
  co_return ticket->open == 0 && !ticket->lost;
}

coro::Task<void> Debts::AwaitAll(uint64_t deadline_nanos) {
  while (!debts_.empty() && NowNanos() < deadline_nanos) {
    Awaken();
    co_await session_->worker.SleepUntil(NowNanos() + kLookAgainNanos);
  }
}

uint16_t Debts::TakeSlot() {
  if (free_slots_.empty()) return next_slot_++;
  const uint16_t slot = free_slots_.back();
  free_slots_.pop_back();
  return slot;
}

std::vector<std::shared_ptr<Debt>> Debts::Leave() {
  std::erase_if(debts_, [this](const std::shared_ptr<Debt>& debt) { return !NodeLives(*debt); });
  for (const std::shared_ptr<Debt>& debt : debts_) {
    Sometimes<"debts: a session leaves one to the next">();
    debt->running = false;
    debt->ticket = nullptr;
    debt->returns_slot = true;  // its transaction is over
  }
  return std::exchange(debts_, {});
}

void Debts::TakeOver(std::vector<std::shared_ptr<Debt>> debts) {
  debts_ = std::move(debts);
  for (const std::shared_ptr<Debt>& debt : debts_) {
    if (debt->kind != Debt::Kind::kCall) continue;
    for (; next_slot_ <= debt->slot; ++next_slot_) free_slots_.push_back(next_slot_);
  }
  for (const std::shared_ptr<Debt>& debt : debts_) std::erase(free_slots_, debt->slot);
  Awaken();
}

}  // namespace gannet::txn
