// The sessions of Database::Run: shared by all threads that call it, at most DatabaseOptions::run_sessions of them.
//
// A call borrows a session for its transaction. A thread that ends leaves nothing behind. A call that finds all
// sessions borrowed waits, first come, first served. OpenSession closes sessions that are not borrowed if it needs
// their places. One that was not borrowed for a second is closed by a later give-back: each thread looks for such
// sessions once in kGiveBacksPerSweep times.
//
// Nests. A thread finds its last session in a nest of its own, so it takes no lock, and shares no cache line with other
// threads, as long as nobody waits. More threads than nests share them. A session that finds its nest taken is kept in
// a list, which the mutex guards. A thread whose nest is empty takes a session from the list or from any nest before it
// opens one: threads that run one after the other need one session.
//
//   borrow      takes the session out of the nest, if nobody waits
//   give back   puts it into the nest, then looks if somebody waits; if so, takes it out again, for him
//   wait        says that it waits, then looks into all nests
//
// The two looks cannot miss each other: each comes after the write that the other looks for, and all four are
// sequentially consistent.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "base/cache_line.h"
#include "base/status.h"
#include "base/thread.h"
#include "txn/database.h"
#include "txn/session.h"

namespace gannet::txn {

// Thread-safe.
class RunSessions {
 public:
  static constexpr uint64_t kIdleNanos = 1'000'000'000;
  static constexpr uint32_t kGiveBacksPerSweep = 16;
  static constexpr size_t kNests = 64;

  RunSessions(Database* database, size_t most, absl::Duration patience)
      : database_(database), most_(most), patience_(patience) {}
  ~RunSessions() { Clear(); }
  RunSessions(const RunSessions&) = delete;
  RunSessions& operator=(const RunSessions&) = delete;

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
  struct alignas(kLineBytes) Nest {
    std::atomic<Session*> session{nullptr};  // owned
    std::atomic<uint32_t> give_backs{0};     // several threads that share the nest may lose counts
    uint32_t at_sweep = 0;                   // give_backs at the last sweep; guarded by the mutex
  };

  Nest& MyNest();
  static std::unique_ptr<Session> TakeFrom(Nest& nest) {
    return std::unique_ptr<Session>(nest.session.exchange(nullptr, std::memory_order_seq_cst));
  }
  void GiveBack(std::unique_ptr<Session> session);
  // Closes the sessions that have been idle for kIdleNanos or longer.
  void Sweep();
  StatusOr<Lease> BorrowShared();
  StatusOr<Lease> Open();
  StatusOr<Lease> Wait(std::unique_lock<Mutex>& lock);
  // The caller of these holds the mutex.
  void AddWaiter(Waiter* waiter);
  void RemoveWaiter(std::deque<Waiter*>::iterator waiter);
  std::unique_ptr<Session> TakeIdle();

  Database* const database_;
  const size_t most_;
  const absl::Duration patience_;

  alignas(kLineBytes) std::atomic<size_t> waiting_{0};  // size of waiters_
  std::array<Nest, kNests> nests_;

  alignas(kLineBytes) Mutex mutex_;  // guards the members below
  std::deque<Idle> idle_;            // found their nests taken; the one given back last is at the end
  std::deque<Waiter*> waiters_;
  size_t open_ = 0;  // idle, borrowed, or being opened
  uint64_t last_sweep_ = 0;
};

}  // namespace gannet::txn
