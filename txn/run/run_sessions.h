// The sessions of Database::Run: shared by all threads that call it, at most DatabaseOptions::run_sessions of them.
//
// A call borrows a session for its transaction. A thread that ends leaves nothing behind. A call that finds all
// sessions borrowed waits, first come, first served. OpenSession closes sessions that are not borrowed if it needs
// their places. One that was not borrowed for a second is closed by a later give-back: each thread looks for such
// sessions once in kGiveBacksPerSweep times.
//
// Nests. A thread has a number of its own while it lives, and the nest with this number. Its session stays in the nest,
// also while it is borrowed, so it takes no lock and no atomic operation that locks the bus, and shares no cache line
// with other threads, as long as nobody waits. Threads that find all numbers taken have no nest. A session without a
// nest is kept in a list, which the mutex guards. A thread whose nest is empty takes a session from the list or from
// any nest before it opens one: threads that run one after the other need one session.
//
//   borrow      says that the session in the nest is borrowed, then looks at the gate; if it is closed, says that the
//               session is not borrowed, and goes by the mutex
//   give back   says that the session is not borrowed, then looks at the gate; if it is closed, goes by the mutex
//   take        closes the gate, then looks which sessions are not borrowed, and takes one of them out of its nest
//
// Only the thread of a nest borrows what is in it, or puts a session there, but any thread may give back. To take is
// for other threads, which hold the mutex: it opens the gate again unless threads wait. So the gate is closed as long
// as a thread waits.
//
// The two looks cannot miss each other: each comes after the store that the other looks for, and between the two steps
// of both there is an AsymmetricFence. So if the borrower finds the gate open, the thread that closes it finds the
// session borrowed. A session that is found borrowed either is, and its give-back will find the gate closed; or its
// thread goes by the mutex next, and then gives it to the first that waits.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/asymmetric_fence.h"
#include "base/cache_line.h"
#include "base/home_process.h"
#include "base/status.h"
#include "base/thread.h"
#include "txn/run/session.h"

namespace gannet::txn {

// Thread-safe.
class RunSessions {
 public:
  static constexpr uint64_t kIdleNanos = 1'000'000'000;
  static constexpr uint32_t kGiveBacksPerSweep = 64;
  static constexpr size_t kNests = 64;

  using Opener = std::function<StatusOr<std::unique_ptr<Session>>()>;

  // `open`: opens a session.
  RunSessions(Opener open, size_t most, absl::Duration patience)
      : open_session_(std::move(open)), most_(most), patience_(patience) {}
  ~RunSessions() { Clear(); }
  RunSessions(const RunSessions&) = delete;
  RunSessions& operator=(const RunSessions&) = delete;

  struct alignas(kLineBytes) Nest {
    std::atomic<Session*> session{nullptr};  // owned
    std::atomic<bool> borrowed{false};
    std::atomic<uint32_t> give_backs{0};  // written by those that give back to the nest
    uint32_t at_sweep = 0;                // give_backs at the last sweep; guarded by the mutex
  };

  // Gives the session back when it is destroyed, also by an exception. May be moved to another thread.
  class Borrowed {
   public:
    Borrowed() = default;  // of nothing
    Borrowed(Borrowed&& other) noexcept
        : from_(other.from_), session_(std::exchange(other.session_, nullptr)), nest_(other.nest_) {}
    Borrowed& operator=(Borrowed&&) = delete;
    ~Borrowed() {
      if (session_ != nullptr) from_->GiveBack(session_, nest_);
    }
    bool has_session() const { return session_ != nullptr; }
    Session& session() { return *session_; }

   private:
    friend class RunSessions;
    Borrowed(RunSessions* from, Session* session, Nest* nest) : from_(from), session_(session), nest_(nest) {}

    RunSessions* from_ = nullptr;
    Session* session_ = nullptr;
    Nest* nest_ = nullptr;  // that owns the session; null: the borrowed session owns it
  };

  // ResourceExhausted if no session becomes free within the patience.
  StatusOr<Borrowed> Borrow() {
    Borrowed own = BorrowOwn();
    if (own.has_session()) [[likely]]
      return own;
    return BorrowShared();
  }
  // The session of the caller's nest; of nothing if that cannot be had at once: then call Borrow.
  Borrowed BorrowOwn();
  // Closes a session that is not borrowed; false: there is none, or threads wait for one.
  bool CloseIdle();
  // Closes all sessions that are not borrowed.
  void Clear();
  size_t open();

 private:
  struct Waiter {
    CondVar given;
    std::unique_ptr<Session> session = nullptr;
    bool may_open = false;  // instead of a session: the right to open one in place of one that could not be opened
  };
  struct Idle {
    std::unique_ptr<Session> session;
    uint64_t since;
  };
  // The nest of the calling thread; null: it has none.
  Nest* MyNest();
  void GiveBack(Session* session, Nest* nest);
  void CountGiveBack(Nest* nest);
  // Called by the thread that has given `nest` a session and has found the gate closed.
  void GiveBackShared(Nest* nest);
  // Keeps a session without a nest.
  void Keep(std::unique_ptr<Session> session);
  // Closes the sessions that have been idle for kIdleNanos or longer.
  void Sweep();
  StatusOr<Borrowed> BorrowShared();
  Borrowed BorrowedOf(std::unique_ptr<Session> session) { return Borrowed(this, session.release(), nullptr); }
  StatusOr<Borrowed> Open();
  StatusOr<Borrowed> Wait(std::unique_lock<Mutex>& lock);
  // The caller of these holds the mutex.
  void AddWaiter(Waiter* waiter);
  void RemoveWaiter(const std::deque<Waiter*>::iterator& waiter);
  // Gives the session to the first that waits; if nobody does, to the list.
  void Hand(std::unique_ptr<Session> session);
  void CloseGate();
  void OpenGateIfNobodyWaits();
  // The session in the nest, if it is not borrowed. The gate is closed, or the nest is the caller's.
  static std::unique_ptr<Session> TakeFrom(Nest& nest);
  std::unique_ptr<Session> TakeIdle();

  const Opener open_session_;
  const HomeProcess home_;
  const size_t most_;
  const absl::Duration patience_;

  alignas(kLineBytes) std::atomic<bool> gate_closed_{false};  // written by those that hold the mutex
  std::array<Nest, kNests> nests_;

  alignas(kLineBytes) Mutex mutex_;  // guards the members below
  std::deque<Idle> idle_;            // sessions without a nest; the one given back last is at the end
  std::deque<Waiter*> waiters_;
  size_t open_ = 0;  // idle, borrowed, or being opened
  uint64_t last_sweep_ = 0;
  uint32_t kept_ = 0;  // give-backs of sessions without a nest
};

}  // namespace gannet::txn
