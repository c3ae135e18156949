// The sessions of Database::Run: shared by all threads that call it, at most DatabaseOptions::run_sessions of them.
//
// A call borrows a session for its transaction. A thread that ends leaves nothing behind. A call that finds all
// sessions borrowed waits, first come, first served. A session that was not borrowed for a second is closed when
// another one is given back, and at once if OpenSession needs its place.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "absl/time/time.h"
#include "base/status.h"
#include "base/thread.h"
#include "txn/database.h"
#include "txn/session.h"

namespace gannet::txn {

// Thread-safe.
class RunSessions {
 public:
  static constexpr uint64_t kIdleNanos = 1'000'000'000;

  RunSessions(Database* database, size_t most, absl::Duration patience)
      : database_(database), most_(most), patience_(patience) {}

  // Gives the session back when it is destroyed, also by an exception.
  class Lease {
   public:
    Lease(RunSessions* from, std::unique_ptr<Session> session) : from_(from), session_(std::move(session)) {}
    Lease(Lease&&) = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (session_ != nullptr) from_->GiveBack(std::move(session_));
    }
    Session& session() { return *session_; }

   private:
    RunSessions* from_;
    std::unique_ptr<Session> session_;
  };

  // ResourceExhausted if no session becomes free within the patience.
  StatusOr<Lease> Borrow();
  // Closes a session that is not borrowed; false: there is none.
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

  void GiveBack(std::unique_ptr<Session> session);
  // Takes a session that has been idle for long; null: there is none. The caller holds the mutex.
  std::unique_ptr<Session> TakeExpired(uint64_t now);
  StatusOr<Lease> Open();
  StatusOr<Lease> Wait(std::unique_lock<Mutex>& lock);

  Database* const database_;
  const size_t most_;
  const absl::Duration patience_;

  Mutex mutex_;            // guards the members below
  std::deque<Idle> idle_;  // the one given back last is at the end
  std::deque<Waiter*> waiters_;
  size_t open_ = 0;  // idle, borrowed, or being opened
};

}  // namespace gannet::txn
