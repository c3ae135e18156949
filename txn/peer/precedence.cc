#include "txn/peer/precedence.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/sometimes.h"

namespace gannet::txn {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;

// A transaction has lost for too long after this many conflicts in a row, if DatabaseOptions::precedence_after has
// passed since the first.
constexpr uint32_t kManyConflicts = 16;
// It has lost for too long also after fewer conflicts, if this many times precedence_after has passed.
constexpr uint32_t kFewConflicts = 4;
constexpr uint64_t kFewConflictsTimes = 10;

constexpr uint64_t kLeaseAttempts = 8;
constexpr uint64_t kLeastLeaseNanos = 250 * kMillisecond;
constexpr uint64_t kPauseLeases = 4;

// An announced word: | number 48 | lease in milliseconds 16 |
constexpr int kLeaseBits = 16;
constexpr uint64_t kMaxLeaseMillis = (uint64_t{1} << kLeaseBits) - 1;

uint64_t MakeWord(uint64_t number, uint64_t lease_nanos) {
  return number << kLeaseBits | std::clamp<uint64_t>(lease_nanos / kMillisecond, 1, kMaxLeaseMillis);
}
uint64_t NumberOf(uint64_t word) {
  return word >> kLeaseBits;
}
uint64_t LeaseNanosOf(uint64_t word) {
  return (word & kMaxLeaseMillis) * kMillisecond;
}

}  // namespace

// ---------------------------------------------------------------------------------------------------------------------

void PrecedenceClaim::NoteAskedAgain() {
  if (asked_ != nullptr) Sometimes<"precedence: a body that asks for another attempt gives its place up">();
  GiveBack();
  conflicts_ = 0;
  asked_again_ = true;
}

void PrecedenceClaim::NoteConflict(Precedence* precedence, uint64_t now) {
  if (std::exchange(asked_again_, false)) return;
  if (asked_ != nullptr) {
    longest_ = std::max(longest_, now - std::min(now, last_));
    last_ = now;
    if (asked_->IsQueued(this, longest_, now)) return;
    Sometimes<"precedence: the turn of a transaction comes and does not help">();
    asked_ = nullptr;
    conflicts_ = 0;  // its turn came and did not help: rule 6
  }
  if (conflicts_++ == 0) {
    first_ = last_ = now;
    return;
  }
  longest_ = std::max(longest_, now - std::min(now, last_));
  last_ = now;
  const uint64_t lost_for = now - std::min(now, first_);
  const uint64_t after = precedence->after_nanos();
  if ((conflicts_ < kManyConflicts || lost_for < after) &&
      (conflicts_ < kFewConflicts || lost_for < kFewConflictsTimes * after)) {
    return;
  }
  if (precedence->limit_nanos() == 0) return;
  asked_ = precedence;
  has_asked_ = true;
  precedence->Enter(this, longest_, now);
}

void PrecedenceClaim::Leave() {
  asked_->Leave(this, NowNanos());
  asked_ = nullptr;
}

// ---------------------------------------------------------------------------------------------------------------------

Precedence::Precedence(rdma::EpochManager* epochs, rdma::NodeId self, int nodes, absl::Duration after,
                       absl::Duration limit)
    : epochs_(epochs),
      self_(self),
      after_nanos_(static_cast<uint64_t>(std::max<int64_t>(absl::ToInt64Nanoseconds(after), 0))),
      limit_nanos_(static_cast<uint64_t>(
          std::clamp<int64_t>(absl::ToInt64Nanoseconds(limit), 0, kMaxLeaseMillis * kMillisecond))),
      tickets_(static_cast<size_t>(nodes)) {
  epochs_->OnRound([this](std::span<const uint64_t> words) { Look(words, NowNanos()); });
}

void Precedence::Enter(const PrecedenceClaim* claim, uint64_t longest_attempt, uint64_t now) {
  const std::lock_guard lock(mutex_);
  if (queue_.empty()) {
    Sometimes<"precedence: a transaction asks to go first">();
  } else {
    Sometimes<"precedence: a transaction queues behind others of its node">();
  }
  ++statistics_.asked;
  queue_.push_back({claim, longest_attempt});
  ExpireAndDraw(now);
}

void Precedence::Leave(const PrecedenceClaim* claim, uint64_t now) {
  const std::lock_guard lock(mutex_);
  const auto place = Find(claim);
  if (place == queue_.end()) return;  // its lease ended before
  if (place == queue_.begin()) {
    if (tickets_[self_].word == 0) Sometimes<"precedence: a transaction is over before its node draws a ticket">();
    DropOwn();
  } else {
    Sometimes<"precedence: a transaction is over before it is the first of its node">();
  }
  queue_.erase(place);
  ExpireAndDraw(now);
}

bool Precedence::IsQueued(const PrecedenceClaim* claim, uint64_t longest_attempt, uint64_t now) {
  const std::lock_guard lock(mutex_);
  ExpireAndDraw(now);
  const auto place = Find(claim);
  if (place == queue_.end()) return false;
  place->longest_attempt = longest_attempt;
  return true;
}

Precedence::Queue::iterator Precedence::Find(const PrecedenceClaim* claim) {
  return std::find_if(queue_.begin(), queue_.end(), [claim](const Waiter& waiter) { return waiter.claim == claim; });
}

bool Precedence::MustWait(const PrecedenceClaim* claim, uint64_t now) {
  const std::lock_guard lock(mutex_);
  ExpireAndDraw(now);
  const size_t first = First();
  if (first == tickets_.size()) return false;
  if (first == self_ && claim != nullptr && queue_.front().claim == claim) {
    Sometimes<"precedence: a commit goes first">();
    return false;
  }
  return true;
}

void Precedence::NoteHeldUp(uint64_t nanos) {
  const std::lock_guard lock(mutex_);
  ++statistics_.held_up;
  statistics_.held_up_nanos += nanos;
}

PrecedenceStatistics Precedence::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

void Precedence::Look(std::span<const uint64_t> words, uint64_t now) {
  const std::lock_guard lock(mutex_);
  for (size_t node = 0; node < tickets_.size() && limit_nanos_ > 0; ++node) {
    Ticket& ticket = tickets_[node];
    if (node == self_ || words[node] == ticket.word) continue;
    if (words[node] != 0) Sometimes<"precedence: another node draws a ticket">();
    ticket = {words[node], now + std::min(LeaseNanosOf(words[node]), limit_nanos_)};
    greatest_ = std::max(greatest_, NumberOf(words[node]));
  }
  ExpireAndDraw(now);
}

void Precedence::ExpireAndDraw(uint64_t now) {
  for (Ticket& ticket : tickets_) {
    if (ticket.valid() && ticket.expires <= now) Expire(&ticket, now);
  }
  if (!queue_.empty() && tickets_[self_].word == 0) {
    if (now < pause_until_) {
      Sometimes<"precedence: no ticket is drawn for a while after one expired">();
    } else {
      Draw(now);
    }
  }
  out_.store(First() < tickets_.size(), std::memory_order_relaxed);
}

void Precedence::Expire(Ticket* ticket, uint64_t now) {
  pause_until_ = std::max(pause_until_, now + kPauseLeases * std::min(LeaseNanosOf(ticket->word), limit_nanos_));
  ticket->expires = 0;
  if (ticket != &tickets_[self_]) {
    Sometimes<"precedence: the ticket of another node expires">();
    return;
  }
  Sometimes<"precedence: the ticket of this node expires">();
  ++statistics_.expired;
  GANNET_CHECK(!queue_.empty(), "the ticket %x of node %d has no transaction", tickets_[self_].word, self_);
  queue_.pop_front();
  DropOwn();
}

void Precedence::Draw(uint64_t now) {
  GANNET_CHECK(!queue_.empty() && tickets_[self_].word == 0,
               "node %d, which has ticket %x, draws another for %d waiters", self_, tickets_[self_].word,
               queue_.size());
  const uint64_t lease =
      std::min(std::max(kLeaseAttempts * queue_.front().longest_attempt, kLeastLeaseNanos), limit_nanos_);
  tickets_[self_] = {MakeWord(++greatest_, lease), now + lease};
  ++statistics_.tickets;
  epochs_->Announce(tickets_[self_].word);
}

void Precedence::DropOwn() {
  if (tickets_[self_].word == 0) return;
  tickets_[self_] = {};
  epochs_->Announce(0);
}

size_t Precedence::First() const {
  size_t first = tickets_.size();
  for (size_t node = 0; node < tickets_.size(); ++node) {
    if (!tickets_[node].valid()) continue;
    if (first != tickets_.size()) Sometimes<"precedence: tickets of several nodes are out">();
    if (first == tickets_.size() || NumberOf(tickets_[node].word) < NumberOf(tickets_[first].word)) first = node;
  }
  return first;
}

}  // namespace gannet::txn
