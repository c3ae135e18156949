// SessionRegistry: the open sessions of a database, and the pending operations that were open when a session was
// closed.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/home_process.h"
#include "base/status.h"
#include "base/thread.h"
#include "txn/path/offload_chooser.h"
#include "txn/session/pending_operations.h"
#include "txn/session/transaction_meter.h"
#include "txn/store/statistics.h"

namespace gannet::txn {

// What a session counts. It lives until the session is removed.
struct SessionCounts {
  const OffloadChooser* paths;
  const TransactionMeter* transactions;
};

// Thread-safe.
class SessionRegistry {
 public:
  // The process that opened the database. Its children must not touch it: functions begin with CheckHome, before they
  // take a lock, which the child would find locked if another thread held it at the fork.
  const HomeProcess& home() const { return home_; }
  // FailedPrecondition in a forked child of that process.
  Status CheckHome() const { return home_.is_here() ? absl::OkStatus() : NotHome(); }
  // FailedPrecondition once the database is closed: no session can be opened after that; and in a forked child.
  Status CheckOpen() const;
  // Counts a session with these owner bits. *number: how many there have been with it. `pending operations` takes over
  // those that a closed session with the same bits left.
  Status Add(uint64_t owner_bits, PendingOperations* pending, const SessionCounts& counts, uint64_t* number);
  // That session is closed; its open pending operations pass to the next one.
  void Remove(uint64_t owner_bits, PendingOperations* pending, const SessionCounts& counts);

  // Sums over all sessions, also those that were closed.
  PathStatistics PathsOf(TableId table, AccessKind kind) const;
  TransactionStatistics transactions() const;

  // A call of Database that uses sessions of its own, or the directory, as long as the object lives. Close names it.
  class Call {
   public:
    // `name`: of the function. A literal.
    Call(SessionRegistry* registry, const char* name);
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call();

   private:
    SessionRegistry* const registry_;
    const char* const name_;
  };

  // Closes the database. False: it was closed. FailedPrecondition if sessions are open, or there is a Call: nothing was
  // done then.
  StatusOr<bool> Close();
  // Closes the database even if sessions are open. False: it was closed.
  bool CloseAnyway();

 private:
  Status NotHome() const;

  const HomeProcess home_;
  const pid_t process_ = getpid();
  mutable Mutex mutex_;  // guards the members below
  bool closed_ = false;
  size_t open_ = 0;
  std::vector<const char*> calls_;  // their names
  uint64_t opened_ = 0;
  std::vector<SessionCounts> counts_;            // of the open sessions
  std::vector<PathStatistics> paths_of_closed_;  // by table and kind
  TransactionStatistics transactions_of_closed_;
  std::vector<std::pair<uint64_t, std::vector<std::shared_ptr<PendingOperation>>>> left_pending_;  // by owner bits
};

}  // namespace gannet::txn
