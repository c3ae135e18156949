#include "txn/peer/debt_collector.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/mutant.h"
#include "base/sometimes.h"
#include "txn/node/local_node.h"
#include "txn/record/record.h"

namespace gannet::txn {
namespace {

constexpr uint64_t kFirstPauseNanos = 10'000;
constexpr uint64_t kLongestPauseNanos = 1'000'000;
// Timeouts of a call for a debt: the first, doubled up to the last. They are short, because a repetition does no harm.
constexpr uint64_t kFirstTimeoutNanos = 2'000'000;
constexpr uint64_t kLastTimeoutNanos = 100'000'000;
// The wait between two looks at the channel when nothing happens.
constexpr uint64_t kIdleNanos = 20'000;

uint64_t PatienceOf(const LocalNode& local) {
  return static_cast<uint64_t>(absl::ToInt64Nanoseconds(local.options.call_timeout));
}

}  // namespace

Status DebtCollector::Start() {
  StatusOr<std::unique_ptr<rdma::Channel>> channel = local_->node.OpenChannel();
  if (!channel.ok()) return channel.status();
  channel_ = *std::move(channel);
  worker_.AddPoller([c = channel_.get()] { return c->Poll(); });
  worker_.AddPoller([this] { return Begin(); });
  worker_.SetIdle([] { SleepForNanos(kIdleNanos); });
  thread_ = Thread("debts", [this] { Loop(); });
  return absl::OkStatus();
}

void DebtCollector::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stops_at_ = std::min(stops_at_, NowNanos() + PatienceOf(*local_));
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void DebtCollector::Take(std::shared_ptr<Debt> debt) {
  {
    const std::lock_guard lock(mutex_);
    taken_.push_back(std::move(debt));
    has_taken_.store(true, std::memory_order_relaxed);  // Begin takes the lock, too
  }
  wake_.notify_all();
}

DebtCollector::Open DebtCollector::open() const {
  const std::lock_guard lock(mutex_);
  Open open{.debts = debts_.size() + taken_.size()};
  for (const auto* const some : {&debts_, &taken_}) {
    for (const std::shared_ptr<Debt>& debt : *some) open.since = std::min(open.since, debt->since);
  }
  return open;
}

void DebtCollector::Loop() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stops_at_ != UINT64_MAX || !taken_.empty(); });
      if (taken_.empty()) return;
    }
    Begin();
    worker_.Run();
    if (GivesUp()) return;
  }
}

size_t DebtCollector::Begin() {
  if (!has_taken_.load(std::memory_order_relaxed)) return 0;
  size_t first = 0;
  {
    const std::lock_guard lock(mutex_);
    first = debts_.size();
    debts_.insert(debts_.end(), taken_.begin(), taken_.end());
    taken_.clear();
    has_taken_.store(false, std::memory_order_relaxed);
  }
  for (size_t i = first; i < debts_.size(); ++i) worker_.Spawn(Settle(debts_[i]));
  return debts_.size() - first;
}

bool DebtCollector::MustWait(const Debt& debt) const {
  return debt.kind == Debt::Kind::kUnlock && std::ranges::any_of(debts_, [&debt](const std::shared_ptr<Debt>& other) {
           return other->kind != Debt::Kind::kUnlock && other->owner_bits == debt.owner_bits &&
                  other->IsOf(debt.record);
         });
}

bool DebtCollector::GivesUp() const {
  const std::lock_guard lock(mutex_);
  return NowNanos() >= stops_at_;
}

void DebtCollector::Close(Debt& debt, Debt::Outcome outcome) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(debts_, [&debt](const std::shared_ptr<Debt>& each) { return each.get() == &debt; });
  }
  debt.outcome.store(outcome, std::memory_order_release);
}

coro::Task<void> DebtCollector::Settle(std::shared_ptr<Debt> debt) {
  uint64_t timeout = kFirstTimeoutNanos;
  for (uint64_t pause = kFirstPauseNanos;; pause = std::min(2 * pause, kLongestPauseNanos)) {
    if (!NodeLives(*debt, *local_)) {
      Sometimes<"debts: the node that something is owed to dies">();
      Close(*debt, Debt::Outcome::kLost);
      co_return;
    }
    Debt::Outcome outcome = Debt::Outcome::kSettled;
    if (!MustWait(*debt) && co_await Try(*debt, timeout, &outcome)) {
      Sometimes<"debts: one is settled">();
      if (NowNanos() - debt->since > PatienceOf(*local_)) Sometimes<"debts: one is settled after call_timeout">();
      Close(*debt, outcome);
      co_return;
    }
    timeout = std::min(2 * timeout, kLastTimeoutNanos);
    if (GivesUp()) co_return;
    if (GANNET_MUTANT(kDebtsRest) && NowNanos() - debt->since > PatienceOf(*local_)) co_return;
    co_await worker_.SleepUntil(NowNanos() + pause);
  }
}

coro::Task<bool> DebtCollector::Try(const Debt& debt, uint64_t timeout_nanos, Debt::Outcome* outcome) {
  switch (debt.kind) {
    case Debt::Kind::kUnlock:
      co_return co_await Unlock(debt);
    case Debt::Kind::kInstall:
      co_return co_await Install(debt);
    case Debt::Kind::kCall:
      break;
  }
  co_return co_await Call(debt, timeout_nanos, outcome);
}

coro::Task<bool> DebtCollector::Unlock(const Debt& debt) {
  std::array<rdma::Operation, 1> swap{rdma::Operation::CompareAndSwap(debt.record, debt.held, debt.next)};
  swap[0].connection = debt.connection;
  const Status swapped = co_await channel_->Post(swap);
  co_return swapped.ok() && swap[0].result != rdma::kLineBusy;
}

coro::Task<bool> DebtCollector::Install(const Debt& debt) {
  uint64_t word = 0;
  std::array<rdma::Operation, 1> look{rdma::Operation::Read(debt.record, &word, sizeof word)};
  look[0].connection = debt.connection;
  const Status read = co_await channel_->Post(look);
  if (!read.ok() || word == rdma::kLineBusy) co_return false;
  if (word != debt.held) {
    Sometimes<"debts: an install had been done">();
    co_return true;
  }
  Sometimes<"debts: an install is repeated">();
  // As in an install by a commit, the image of several lines leaves the first one locked.
  std::array<rdma::Operation, 2> operations;
  size_t n = 0;
  if (!debt.image.empty()) {
    operations[n++] = rdma::Operation::Write(debt.image.data(), debt.record, static_cast<uint32_t>(debt.image.size()));
  }
  if (debt.image.size() != kLineBytes) {
    operations[n++] = rdma::Operation::Write(&debt.next, debt.record, sizeof debt.next);
  }
  for (rdma::Operation& operation : operations) operation.connection = debt.connection;
  const std::span<rdma::Operation> batch(operations.data(), n);
  const Status written = co_await channel_->Post(batch);
  co_return written.ok();
}

coro::Task<bool> DebtCollector::Call(const Debt& debt, uint64_t timeout_nanos, Debt::Outcome* outcome) {
  const absl::Duration timeout = absl::Nanoseconds(static_cast<int64_t>(timeout_nanos));
  const StatusOr<size_t> answer =
      co_await channel_->Call(debt.node, debt.method, debt.message, {}, timeout, debt.connection);
  if (!answer.ok() && IsUnknownOutcome(answer.status())) co_return false;
  // The owner has refused. An owner that follows the protocol does not refuse a debt: the slot belongs to the debt, so
  // nothing newer overtakes it, and the records in it are locked by this session. So no simulation reaches this.
  if (!answer.ok()) *outcome = Debt::Outcome::kLost;
  co_return true;
}

}  // namespace gannet::txn
