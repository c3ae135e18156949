#include "txn/run/run_sessions.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace gannet::txn {
namespace {

constexpr int kNoNumberYet = -1;
constexpr int kThreadEnds = -2;  // it must not take one again
constinit thread_local int number_of_thread = kNoNumberYet;
static_assert(RunSessions::kNests == 64);
constinit std::atomic<uint64_t> free_numbers{~uint64_t{0}};  // a bit each

// Gives the thread's number back when the thread ends.
struct NumberOfThread {
  ~NumberOfThread() {
    if (number_of_thread >= 0) free_numbers.fetch_or(uint64_t{1} << number_of_thread, std::memory_order_release);
    number_of_thread = kThreadEnds;
  }
  void Take() {
    // An acquire: what the last thread with this number stored in its nests comes before.
    uint64_t free = free_numbers.load(std::memory_order_relaxed);
    while (free != 0) {
      if (free_numbers.compare_exchange_weak(free, free & (free - 1), std::memory_order_acquire,
                                             std::memory_order_relaxed)) {
        number_of_thread = std::countr_zero(free);
        return;
      }
    }
  }
};

[[gnu::noinline]] void TakeNumber() {
  static thread_local NumberOfThread number;
  number.Take();
}

}  // namespace

// Simulated threads may share a thread of the operating system: they share one nest. They are not preempted between the
// steps that the thread of a nest takes there.
inline RunSessions::Nest* RunSessions::MyNest() {
  if (Runtime::Current() != nullptr) [[unlikely]]
    return &nests_[0];
  if (number_of_thread < 0) [[unlikely]] {
    if (number_of_thread == kNoNumberYet) TakeNumber();
    if (number_of_thread < 0) return nullptr;
  }
  return &nests_[static_cast<size_t>(number_of_thread)];
}

RunSessions::Borrowed RunSessions::BorrowOwn() {
  Nest* const nest = MyNest();
  // The nest's session is borrowed already: this is a Run within a body of Run, or the borrowed session was moved to
  // another thread.
  if (nest == nullptr || nest->borrowed.load(std::memory_order_acquire)) [[unlikely]]
    return {};
  nest->borrowed.store(true, std::memory_order_relaxed);
  AsymmetricFence::Often();
  if (!gate_closed_.load(std::memory_order_acquire)) [[likely]] {
    if (Session* const session = nest->session.load(std::memory_order_relaxed); session != nullptr) [[likely]] {
      return Borrowed(this, session, nest);
    }
  }
  nest->borrowed.store(false, std::memory_order_release);
  return {};
}

StatusOr<RunSessions::Borrowed> RunSessions::BorrowShared() {
  std::unique_lock lock(mutex_);
  Nest* const nest = MyNest();
  std::unique_ptr<Session> own = nest == nullptr ? nullptr : TakeFrom(*nest);
  if (waiters_.empty()) {
    if (own != nullptr) return BorrowedOf(std::move(own));
    if (std::unique_ptr<Session> session = TakeIdle(); session != nullptr) return BorrowedOf(std::move(session));
    if (open_ < most_) {
      ++open_;
      lock.unlock();
      return Open();
    }
  } else if (own != nullptr) {
    Hand(std::move(own));  // the first that waits found it borrowed, by this call
  }
  return Wait(lock);
}

void RunSessions::CloseGate() {
  if (gate_closed_.load(std::memory_order_relaxed)) return;
  gate_closed_.store(true, std::memory_order_relaxed);
  GANNET_CHECK(AsymmetricFence::Rarely(), "the kernel offers membarrier, but does not execute it");
}

void RunSessions::OpenGateIfNobodyWaits() {
  if (waiters_.empty()) gate_closed_.store(false, std::memory_order_release);
}

std::unique_ptr<Session> RunSessions::TakeFrom(Nest& nest) {
  if (nest.borrowed.load(std::memory_order_acquire)) return nullptr;
  return std::unique_ptr<Session>(nest.session.exchange(nullptr, std::memory_order_acq_rel));
}

std::unique_ptr<Session> RunSessions::TakeIdle() {
  if (!idle_.empty()) {
    std::unique_ptr<Session> session = std::move(idle_.back().session);
    idle_.pop_back();
    return session;
  }
  // Spares the fence. A call that waits must not rely on this look.
  const auto looks_idle = [](const Nest& nest) {
    return nest.session.load(std::memory_order_relaxed) != nullptr && !nest.borrowed.load(std::memory_order_relaxed);
  };
  if (waiters_.empty() && std::ranges::none_of(nests_, looks_idle)) return nullptr;
  CloseGate();
  std::unique_ptr<Session> session;
  for (size_t i = 0; i < nests_.size() && session == nullptr; ++i) session = TakeFrom(nests_[i]);
  OpenGateIfNobodyWaits();
  return session;
}

// The caller has already counted the session in open_.
StatusOr<RunSessions::Borrowed> RunSessions::Open() {
  StatusOr<std::unique_ptr<Session>> session = open_session_();
  if (session.ok()) return BorrowedOf(*std::move(session));
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
  CloseGate();
}

void RunSessions::RemoveWaiter(const std::deque<Waiter*>::iterator& waiter) {
  waiters_.erase(waiter);
  OpenGateIfNobodyWaits();
}

StatusOr<RunSessions::Borrowed> RunSessions::Wait(std::unique_lock<Mutex>& lock) {
  Waiter self;
  AddWaiter(&self);
  // Only the first one has to look: a session that is given back after that is handed to it.
  if (waiters_.front() == &self) {
    if (std::unique_ptr<Session> session = TakeIdle(); session != nullptr) {
      RemoveWaiter(waiters_.begin());
      return BorrowedOf(std::move(session));
    }
  }
  self.given.wait_for(lock, patience_, [&] { return self.session != nullptr || self.may_open; });
  if (self.session != nullptr) return BorrowedOf(std::move(self.session));
  if (self.may_open) {
    lock.unlock();
    return Open();
  }
  RemoveWaiter(std::ranges::find(waiters_, &self));
  return absl::ResourceExhaustedError(
      absl::StrCat("Database::Run: all ", open_, " sessions of Run were busy for ", absl::FormatDuration(patience_),
                   "; raise DatabaseOptions::run_sessions (", most_, "), or do not call Run within a body of Run"));
}

void RunSessions::CountGiveBack(Nest* nest) {
  const uint32_t give_backs = nest->give_backs.load(std::memory_order_relaxed) + 1;
  nest->give_backs.store(give_backs, std::memory_order_relaxed);
  if (give_backs % kGiveBacksPerSweep == 0) [[unlikely]]
    Sweep();
}

void RunSessions::GiveBack(Session* session, Nest* nest) {
  if (!home_.is_here()) [[unlikely]]  // nobody can borrow it
    return;
  if (nest == nullptr) [[unlikely]] {
    nest = MyNest();
    if (nest == nullptr || nest->session.load(std::memory_order_relaxed) != nullptr) {
      return Keep(std::unique_ptr<Session>(session));
    }
    CountGiveBack(nest);
    nest->session.store(session, std::memory_order_release);
  } else {
    CountGiveBack(nest);
    nest->borrowed.store(false, std::memory_order_release);
  }
  AsymmetricFence::Often();
  if (gate_closed_.load(std::memory_order_acquire)) [[unlikely]]
    GiveBackShared(nest);
}

void RunSessions::GiveBackShared(Nest* nest) {
  const std::lock_guard lock(mutex_);
  if (waiters_.empty()) return;
  // Null: it is borrowed again, or another call has taken it.
  if (std::unique_ptr<Session> session = TakeFrom(*nest); session != nullptr) Hand(std::move(session));
}

void RunSessions::Keep(std::unique_ptr<Session> session) {
  bool sweep;
  {
    const std::lock_guard lock(mutex_);
    sweep = ++kept_ % kGiveBacksPerSweep == 0;
    Hand(std::move(session));
  }
  if (sweep) Sweep();
}

void RunSessions::Hand(std::unique_ptr<Session> session) {
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
  if (now < last_sweep_ + kIdleNanos || !waiters_.empty()) return;
  last_sweep_ = now;
  while (!idle_.empty() && idle_.front().since + kIdleNanos <= now) {
    expired.push_back(std::move(idle_.front().session));
    idle_.pop_front();
  }
  for (Nest& nest : nests_) {
    const uint32_t give_backs = nest.give_backs.load(std::memory_order_relaxed);
    if (std::exchange(nest.at_sweep, give_backs) != give_backs) continue;
    if (nest.session.load(std::memory_order_relaxed) == nullptr) continue;
    CloseGate();
    if (std::unique_ptr<Session> session = TakeFrom(nest); session != nullptr) expired.push_back(std::move(session));
  }
  OpenGateIfNobodyWaits();
  open_ -= expired.size();
}

bool RunSessions::CloseIdle() {
  std::unique_ptr<Session> closed;
  const std::lock_guard lock(mutex_);
  if (!waiters_.empty()) return false;  // what is not borrowed is about to be given to the first that waits
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
