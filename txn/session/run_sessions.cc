#include "txn/session/run_sessions.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gannet::txn {
namespace {

// Threads get numbers in turn.
size_t ThreadNumber() {
  static constinit std::atomic<size_t> next{0};
  static thread_local const size_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

}  // namespace

// Simulated threads may share a thread of the operating system: they share one nest.
RunSessions::Nest& RunSessions::MyNest() {
  if (Runtime::Current() != nullptr) [[unlikely]]
    return nests_[0];
  return nests_[ThreadNumber() % kNests];
}

StatusOr<RunSessions::Lease> RunSessions::Borrow() {
  if (waiting_.load(std::memory_order_seq_cst) == 0) [[likely]] {
    if (std::unique_ptr<Session> session = TakeFrom(MyNest()); session != nullptr) [[likely]] {
      return Lease(this, std::move(session));
    }
  }
  return BorrowShared();
}

StatusOr<RunSessions::Lease> RunSessions::BorrowShared() {
  std::unique_lock lock(mutex_);
  if (waiters_.empty()) {
    if (std::unique_ptr<Session> session = TakeIdle(); session != nullptr) return Lease(this, std::move(session));
    if (open_ < most_) {
      ++open_;
      lock.unlock();
      return Open();
    }
  }
  return Wait(lock);
}

std::unique_ptr<Session> RunSessions::TakeIdle() {
  if (!idle_.empty()) {
    std::unique_ptr<Session> session = std::move(idle_.back().session);
    idle_.pop_back();
    return session;
  }
  for (Nest& nest : nests_) {
    if (nest.session.load(std::memory_order_seq_cst) == nullptr) continue;
    if (std::unique_ptr<Session> session = TakeFrom(nest); session != nullptr) return session;
  }
  return nullptr;
}

// The caller has already counted the session in open_.
StatusOr<RunSessions::Lease> RunSessions::Open() {
  StatusOr<std::unique_ptr<Session>> session = database_->OpenSession();
  if (session.ok()) return Lease(this, *std::move(session));
  std::unique_lock lock(mutex_);
  // The node has no place for another session, but borrowed ones will come back.
  if (absl::IsResourceExhausted(session.status()) && open_ > 1) {
    --open_;
    return Wait(lock);
  }
  if (waiters_.empty()) {
    --open_;
  } else {
    waiters_.front()->may_open = true;
    waiters_.front()->given.notify_one();
    RemoveWaiter(waiters_.begin());
  }
  return session.status();
}

void RunSessions::AddWaiter(Waiter* waiter) {
  waiters_.push_back(waiter);
  waiting_.store(waiters_.size(), std::memory_order_seq_cst);
}

void RunSessions::RemoveWaiter(std::deque<Waiter*>::iterator waiter) {
  waiters_.erase(waiter);
  waiting_.store(waiters_.size(), std::memory_order_seq_cst);
}

StatusOr<RunSessions::Lease> RunSessions::Wait(std::unique_lock<Mutex>& lock) {
  Waiter self;
  AddWaiter(&self);
  // Only the first one has to look: a session that is put into a nest after that is taken out again.
  if (waiters_.front() == &self) {
    if (std::unique_ptr<Session> session = TakeIdle(); session != nullptr) {
      RemoveWaiter(waiters_.begin());
      return Lease(this, std::move(session));
    }
  }
  self.given.wait_for(lock, patience_, [&] { return self.session != nullptr || self.may_open; });
  if (self.session != nullptr) return Lease(this, std::move(self.session));
  if (self.may_open) {
    lock.unlock();
    return Open();
  }
  RemoveWaiter(std::ranges::find(waiters_, &self));
  return absl::ResourceExhaustedError(
      absl::StrCat("Database::Run: all ", open_, " sessions were busy for ", absl::FormatDuration(patience_),
                   "; raise DatabaseOptions::run_sessions (", most_, "), or do not call Run within a body of Run"));
}

void RunSessions::GiveBack(std::unique_ptr<Session> session) {
  Nest& nest = MyNest();
  const uint32_t give_backs = nest.give_backs.load(std::memory_order_relaxed) + 1;
  nest.give_backs.store(give_backs, std::memory_order_relaxed);
  if (give_backs % kGiveBacksPerSweep == 0) [[unlikely]]
    Sweep();
  Session* none = nullptr;
  if (nest.session.compare_exchange_strong(none, session.get(), std::memory_order_seq_cst)) [[likely]] {
    session.release();
    if (waiting_.load(std::memory_order_seq_cst) == 0) [[likely]]
      return;
    session = TakeFrom(nest);
    if (session == nullptr) return;  // another call has taken it
  }
  const std::lock_guard lock(mutex_);
  if (waiters_.empty()) {
    idle_.push_back({std::move(session), NowNanos()});
    return;
  }
  waiters_.front()->session = std::move(session);
  waiters_.front()->given.notify_one();
  RemoveWaiter(waiters_.begin());
}

// A nest whose count stands where the last sweep found it, more than kIdleNanos ago, has not been used since.
void RunSessions::Sweep() {
  std::vector<std::unique_ptr<Session>> expired;  // closed without the mutex
  if (!mutex_.try_lock()) return;                 // another time
  const std::lock_guard lock(mutex_, std::adopt_lock);
  const uint64_t now = NowNanos();
  if (now < last_sweep_ + kIdleNanos) return;
  last_sweep_ = now;
  while (!idle_.empty() && idle_.front().since + kIdleNanos <= now) {
    expired.push_back(std::move(idle_.front().session));
    idle_.pop_front();
  }
  for (Nest& nest : nests_) {
    const uint32_t give_backs = nest.give_backs.load(std::memory_order_relaxed);
    if (std::exchange(nest.at_sweep, give_backs) != give_backs) continue;
    if (std::unique_ptr<Session> session = TakeFrom(nest); session != nullptr) expired.push_back(std::move(session));
  }
  open_ -= expired.size();
}

bool RunSessions::CloseIdle() {
  std::unique_ptr<Session> closed;
  const std::lock_guard lock(mutex_);
  closed = TakeIdle();
  if (closed == nullptr) return false;
  --open_;
  return true;
}

void RunSessions::Clear() {
  while (CloseIdle()) {
  }
}

size_t RunSessions::open() {
  const std::lock_guard lock(mutex_);
  return open_;
}

}  // namespace gannet::txn
