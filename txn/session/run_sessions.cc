#include "txn/session/run_sessions.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gannet::txn {

StatusOr<RunSessions::Lease> RunSessions::Borrow() {
  std::unique_lock lock(mutex_);
  if (waiters_.empty()) {
    if (!idle_.empty()) {
      std::unique_ptr<Session> session = std::move(idle_.back().session);
      idle_.pop_back();
      return Lease(this, std::move(session));
    }
    if (open_ < most_) {
      ++open_;
      lock.unlock();
      return Open();
    }
  }
  return Wait(lock);
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
    waiters_.pop_front();
  }
  return session.status();
}

StatusOr<RunSessions::Lease> RunSessions::Wait(std::unique_lock<Mutex>& lock) {
  Waiter self;
  waiters_.push_back(&self);
  self.given.wait_for(lock, patience_, [&] { return self.session != nullptr || self.may_open; });
  if (self.session != nullptr) return Lease(this, std::move(self.session));
  if (self.may_open) {
    lock.unlock();
    return Open();
  }
  std::erase(waiters_, &self);
  return absl::ResourceExhaustedError(
      absl::StrCat("Database::Run: all ", open_, " sessions were busy for ", absl::FormatDuration(patience_),
                   "; raise DatabaseOptions::run_sessions (", most_, "), or do not call Run within a body of Run"));
}

std::unique_ptr<Session> RunSessions::TakeExpired(uint64_t now) {
  if (idle_.empty() || idle_.front().since + kIdleNanos > now) return nullptr;
  std::unique_ptr<Session> expired = std::move(idle_.front().session);
  idle_.pop_front();
  --open_;
  return expired;
}

void RunSessions::GiveBack(std::unique_ptr<Session> session) {
  std::unique_ptr<Session> expired;  // closed without the mutex
  const std::lock_guard lock(mutex_);
  if (!waiters_.empty()) {
    Waiter* const next = waiters_.front();
    waiters_.pop_front();
    next->session = std::move(session);
    next->given.notify_one();
    return;
  }
  const uint64_t now = NowNanos();
  idle_.push_back({std::move(session), now});
  expired = TakeExpired(now);
}

bool RunSessions::CloseIdle() {
  std::unique_ptr<Session> closed;
  const std::lock_guard lock(mutex_);
  closed = TakeExpired(UINT64_MAX);
  return closed != nullptr;
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
