// DebtCollector: settles the debts of all sessions of a database (debts.h), in a thread of its own, which sleeps while
// there are none. It repeats the operation of each debt, after growing pauses, until an answer says that it is done or
// the debt's node is dead. It needs no session: a session whose thread is idle, or that only reads, would otherwise
// leave a record locked for as long.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/coro/task.h"
#include "base/coro/worker.h"
#include "base/status.h"
#include "base/thread.h"
#include "rdma/fabric.h"
#include "txn/peer/debt.h"

namespace gannet::txn {

struct LocalNode;

class DebtCollector {
 public:
  // `local` must outlive it.
  explicit DebtCollector(const LocalNode* local) : local_(local) {}
  ~DebtCollector() { Stop(); }
  DebtCollector(const DebtCollector&) = delete;
  DebtCollector& operator=(const DebtCollector&) = delete;

  // Takes a channel, which it keeps: when sessions have the others, debts can be settled nevertheless. Errors:
  // rdma::Node::OpenChannel.
  Status Start();
  // Waits until all debts are settled, at most for DatabaseOptions::call_timeout; those that remain then stay open.
  void Stop();

  // Thread-safe. Once it was stopped, the debt stays open.
  void Take(std::shared_ptr<Debt> debt);
  // How many are open, and since when the oldest is (UINT64_MAX: none is). Thread-safe.
  struct Open {
    size_t debts = 0;
    uint64_t since = UINT64_MAX;
  };
  Open open() const;

 private:
  void Loop();
  // Begins with the debts that were taken since the last call. Returns their number.
  size_t Begin();
  // Tries until the debt is settled or lost, or the collector stops.
  coro::Task<void> Settle(std::shared_ptr<Debt> debt);
  // True if the debt is settled: *outcome says how.
  coro::Task<bool> Try(const Debt& debt, uint64_t timeout_nanos, Debt::Outcome* outcome);
  coro::Task<bool> Unlock(const Debt& debt);
  coro::Task<bool> Install(const Debt& debt);
  coro::Task<bool> Call(const Debt& debt, uint64_t timeout_nanos, Debt::Outcome* outcome);
  // Rule (b), for the other debts of the same session.
  bool MustWait(const Debt& debt) const;
  void Close(Debt& debt, Debt::Outcome outcome);
  bool GivesUp() const;

  const LocalNode* const local_;
  mutable Mutex mutex_;  // guards the members up to the next comment
  CondVar wake_;
  std::vector<std::shared_ptr<Debt>> taken_;  // and not begun
  uint64_t stops_at_ = UINT64_MAX;            // NowNanos
  // The list is changed by its thread only, and with the lock held: so that thread reads it without.
  std::vector<std::shared_ptr<Debt>> debts_;
  std::atomic<bool> has_taken_{false};  // without the lock: something may be in taken_
  std::unique_ptr<rdma::Channel> channel_;
  coro::Worker worker_;
  Thread thread_;
};

}  // namespace gannet::txn
