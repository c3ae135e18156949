#include "txn/peer/pending_completer.h"

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
// Timeouts of a call for a pending operation: the first, doubled up to the last. They are short, because a repetition
// does no harm.
constexpr uint64_t kFirstTimeoutNanos = 2'000'000;
constexpr uint64_t kLastTimeoutNanos = 100'000'000;
// The wait between two looks at the channel when nothing happens.
constexpr uint64_t kIdleNanos = 20'000;

uint64_t PatienceOf(const LocalNode& local) {
  return static_cast<uint64_t>(absl::ToInt64Nanoseconds(local.options.call_timeout));
}

}  // namespace

Status PendingCompleter::Start() {
  StatusOr<std::unique_ptr<rdma::Channel>> channel = local_->node.OpenChannel();
  if (!channel.ok()) return channel.status();
  channel_ = *std::move(channel);
  worker_.AddPoller([c = channel_.get()] { return c->Poll(); });
  worker_.AddPoller([this] { return Begin(); });
  worker_.SetIdle([] { SleepForNanos(kIdleNanos); });
  thread_ = Thread("pending operations", [this] { Loop(); });
  return absl::OkStatus();
}

void PendingCompleter::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stops_at_ = std::min(stops_at_, NowNanos() + PatienceOf(*local_));
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void PendingCompleter::Take(std::shared_ptr<PendingOperation> pending) {
  {
    const std::lock_guard lock(mutex_);
    taken_.push_back(std::move(pending));
    has_taken_.store(true, std::memory_order_relaxed);  // Begin takes the lock, too
  }
  wake_.notify_all();
}

PendingCompleter::Open PendingCompleter::open() const {
  const std::lock_guard lock(mutex_);
  Open open{.pending = pending_.size() + taken_.size()};
  for (const auto* const some : {&pending_, &taken_}) {
    for (const std::shared_ptr<PendingOperation>& pending : *some) open.since = std::min(open.since, pending->since);
  }
  return open;
}

void PendingCompleter::Loop() {
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

size_t PendingCompleter::Begin() {
  if (!has_taken_.load(std::memory_order_relaxed)) return 0;
  size_t first = 0;
  {
    const std::lock_guard lock(mutex_);
    first = pending_.size();
    pending_.insert(pending_.end(), taken_.begin(), taken_.end());
    taken_.clear();
    has_taken_.store(false, std::memory_order_relaxed);
  }
  for (size_t i = first; i < pending_.size(); ++i) worker_.Spawn(Settle(pending_[i]));
  return pending_.size() - first;
}

bool PendingCompleter::MustWait(const PendingOperation& pending) const {
  return pending.kind == PendingOperation::Kind::kUnlock &&
         std::ranges::any_of(pending_, [&pending](const std::shared_ptr<PendingOperation>& other) {
           return other->kind != PendingOperation::Kind::kUnlock && other->owner_bits == pending.owner_bits &&
                  other->IsOf(pending.record);
         });
}

bool PendingCompleter::GivesUp() const {
  const std::lock_guard lock(mutex_);
  return NowNanos() >= stops_at_;
}

void PendingCompleter::Close(PendingOperation& pending, PendingOperation::Outcome outcome) {
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(pending_,
                  [&pending](const std::shared_ptr<PendingOperation>& each) { return each.get() == &pending; });
  }
  pending.outcome.store(outcome, std::memory_order_release);
}

coro::Task<void> PendingCompleter::Settle(std::shared_ptr<PendingOperation> pending) {
  uint64_t timeout = kFirstTimeoutNanos;
  for (uint64_t pause = kFirstPauseNanos;; pause = std::min(2 * pause, kLongestPauseNanos)) {
    if (!NodeLives(*pending, *local_)) {
      Sometimes<"pending operations: the node that something is owed to dies">();
      Close(*pending, PendingOperation::Outcome::kLost);
      co_return;
    }
    PendingOperation::Outcome outcome = PendingOperation::Outcome::kSettled;
    if (!MustWait(*pending) && co_await Try(*pending, timeout, &outcome)) {
      Sometimes<"pending operations: one is settled">();
      if (NowNanos() - pending->since > PatienceOf(*local_))
        Sometimes<"pending operations: one is settled after call_timeout">();
      Close(*pending, outcome);
      co_return;
    }
    timeout = std::min(2 * timeout, kLastTimeoutNanos);
    if (GivesUp()) co_return;
    if (GANNET_MUTANT(kPendingRest) && NowNanos() - pending->since > PatienceOf(*local_)) co_return;
    co_await worker_.SleepUntil(NowNanos() + pause);
  }
}

coro::Task<bool> PendingCompleter::Try(const PendingOperation& pending, uint64_t timeout_nanos,
                                       PendingOperation::Outcome* outcome) {
  switch (pending.kind) {
    case PendingOperation::Kind::kUnlock:
      co_return co_await Unlock(pending);
    case PendingOperation::Kind::kInstall:
      co_return co_await Install(pending);
    case PendingOperation::Kind::kCall:
      break;
  }
  co_return co_await Call(pending, timeout_nanos, outcome);
}

coro::Task<bool> PendingCompleter::Unlock(const PendingOperation& pending) {
  std::array<rdma::Operation, 1> swap{rdma::Operation::CompareAndSwap(pending.record, pending.held, pending.next)};
  swap[0].connection = pending.connection;
  const Status swapped = co_await channel_->Post(swap);
  co_return swapped.ok() && swap[0].result != rdma::kLineBusy;
}

coro::Task<bool> PendingCompleter::Install(const PendingOperation& pending) {
  uint64_t word = 0;
  std::array<rdma::Operation, 1> look{rdma::Operation::Read(pending.record, &word, sizeof word)};
  look[0].connection = pending.connection;
  const Status read = co_await channel_->Post(look);
  if (!read.ok() || word == rdma::kLineBusy) co_return false;
  if (word != pending.held) {
    Sometimes<"pending operations: an install had been done">();
    co_return true;
  }
  Sometimes<"pending operations: an install is repeated">();
  // As in an install by a commit, the image of several lines leaves the first one locked.
  std::array<rdma::Operation, 2> operations;
  size_t n = 0;
  if (!pending.image.empty()) {
    operations[n++] =
        rdma::Operation::Write(pending.image.data(), pending.record, static_cast<uint32_t>(pending.image.size()));
  }
  if (pending.image.size() != kLineBytes) {
    operations[n++] = rdma::Operation::Write(&pending.next, pending.record, sizeof pending.next);
  }
  for (rdma::Operation& operation : operations) operation.connection = pending.connection;
  const std::span<rdma::Operation> batch(operations.data(), n);
  const Status written = co_await channel_->Post(batch);
  co_return written.ok();
}

coro::Task<bool> PendingCompleter::Call(const PendingOperation& pending, uint64_t timeout_nanos,
                                        PendingOperation::Outcome* outcome) {
  const absl::Duration timeout = absl::Nanoseconds(static_cast<int64_t>(timeout_nanos));
  const StatusOr<size_t> answer =
      co_await channel_->Call(pending.node, pending.method, pending.message, {}, timeout, pending.connection);
  if (!answer.ok() && IsUnknownOutcome(answer.status())) co_return false;
  // The owner has refused. An owner that follows the protocol does not refuse a pending operation: the slot belongs to
  // the pending operation, so nothing newer overtakes it, and the records in it are locked by this session. So no
  // simulation reaches this.
  if (!answer.ok()) *outcome = PendingOperation::Outcome::kLost;
  co_return true;
}

}  // namespace gannet::txn
