// PendingCompleter: settles the pending operations of all sessions of a database (pending_operations.h), in a thread of
// its own, which sleeps while there are none. It repeats the operation of each pending operation, after growing pauses,
// until an answer says that it is done or the pending operation's node is dead. It needs no session: a session whose
// thread is idle, or that only reads, would otherwise leave a record locked for as long.
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
#include "txn/peer/pending_operation.h"

namespace gannet::txn {

struct LocalNode;

class PendingCompleter {
 public:
  // `local` must outlive it.
  explicit PendingCompleter(const LocalNode* local) : local_(local) {}
  ~PendingCompleter() { Stop(); }
  PendingCompleter(const PendingCompleter&) = delete;
  PendingCompleter& operator=(const PendingCompleter&) = delete;

  // Takes a channel, which it keeps: when sessions have the others, pending operations can be settled nevertheless.
  // Errors: rdma::Node::OpenChannel.
  Status Start();
  // Waits until all pending operations are settled, at most for DatabaseOptions::call_timeout; those that remain then
  // stay open.
  void Stop();

  // Thread-safe. Once it was stopped, the pending operation stays open.
  void Take(std::shared_ptr<PendingOperation> pending);
  // How many are open, and since when the oldest is (UINT64_MAX: none is). Thread-safe.
  struct Open {
    size_t pending = 0;
    uint64_t since = UINT64_MAX;
  };
  Open open() const;

 private:
  void Loop();
  // Begins with the pending operations that were taken since the last call. Returns their number.
  size_t Begin();
  // Tries until the pending operation is settled or lost, or the completer stops.
  coro::Task<void> Settle(std::shared_ptr<PendingOperation> pending);
  // True if the pending operation is settled: *outcome says how.
  coro::Task<bool> Try(const PendingOperation& pending, uint64_t timeout_nanos, PendingOperation::Outcome* outcome);
  coro::Task<bool> Unlock(const PendingOperation& pending);
  coro::Task<bool> Install(const PendingOperation& pending);
  coro::Task<bool> Call(const PendingOperation& pending, uint64_t timeout_nanos, PendingOperation::Outcome* outcome);
  // Rule (b), for the other pending operations of the same session.
  bool MustWait(const PendingOperation& pending) const;
  void Close(PendingOperation& pending, PendingOperation::Outcome outcome);
  bool GivesUp() const;

  const LocalNode* const local_;
  mutable Mutex mutex_;  // guards the members up to the next comment
  CondVar wake_;
  std::vector<std::shared_ptr<PendingOperation>> taken_;  // and not begun
  uint64_t stops_at_ = UINT64_MAX;                        // NowNanos
  // The list is changed by its thread only, and with the lock held: so that thread reads it without.
  std::vector<std::shared_ptr<PendingOperation>> pending_;
  std::atomic<bool> has_taken_{false};  // without the lock: something may be in taken_
  std::unique_ptr<rdma::Channel> channel_;
  coro::Worker worker_;
  Thread thread_;
};

}  // namespace gannet::txn
