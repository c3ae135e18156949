// Session: one worker thread's use of a database. It runs transactions, and repeats them after conflicts.
//
//   auto session = database->OpenSession();
//   Status status = (*session)->RunBlocking([&](Transaction& t) { return Transfer(t, **table, 1, 2, 100); });
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/coro/async.h"
#include "base/coro/task.h"
#include "base/coro/worker.h"
#include "base/status.h"
#include "index/types.h"
#include "txn/peer/precedence_claim.h"
#include "txn/run/blocking.h"
#include "txn/run/transaction.h"
#include "txn/store/statistics.h"

namespace gannet::rdma {
class Channel;
}

namespace gannet::txn {

class Database;
struct DatabaseState;
struct SessionState;

// Facts about one call of Run.
struct RunOutcome {
  uint32_t aborts = 0;            // attempts that met a conflict, or full memory
  bool asked_precedence = false;  // after too many aborts it asked to go first (txn/peer/precedence.h)
  // Set by a Run that did not wait for the disk. Its result, Ok or an error, must not be told to others before
  // Database::durable_epoch() has reached this (Session::WhenDurable); 0: it may be told at once.
  uint64_t durable_at = 0;
};

// The moment when Run returns, with DurabilityMode::kSync.
enum class Until {
  kDurable,
  // Run returns as soon as others see the writes. The caller must not tell the result to others before it is durable.
  // So a thread can work on a few transactions, whose memory stays in its caches, while any number of results wait.
  kVisible,
};

// Not thread-safe: belongs to the thread that uses it.
class Session {
 public:
  ~Session();

  // Runs `body` (Task<Status>(Transaction&)) until it commits. Conflicts are retried after a randomised back-off.
  //
  // The outcome of an attempt is decided in this order:
  //   - An operation failed (txn/run/transaction.h): the failure counts, whatever the body returned. Aborted: the
  //     body runs again; else Run returns it.
  //   - The body returned Aborted: it asks for another attempt, and gets one.
  //   - The body returned another error, of any code: its own. If the read set validates, Run returns the error
  //     unchanged; else the body runs again. Before it tells that memory is full, it tries up to three times more.
  //   - The body returned Ok: the transaction commits. Aborted: the body runs again; else Run returns Commit's result.
  //
  // So if Run returns Ok, the transaction has committed. Unknown, if no body returns it itself: it may have committed.
  // Any other result: it was rolled back. `outcome` may be null with Until::kDurable.
  //
  // A body may throw. An exception that leaves it is treated like an error that it returned: the transaction rolls
  // back, and Run throws the exception if it would return an error. If an operation had failed, or the read set does
  // not validate, the exception is dropped, and the body runs again or Run returns the failure.
  //
  // The body neither commits nor rolls back itself: Commit and Rollback refuse with FailedPrecondition, which Run then
  // returns.
  //
  // With DurabilityMode::kSync each result waits until everything on which it depends is durable: Ok, AlreadyExists,
  // and the body's own errors.
  template <class Body>
  coro::Task<Status> Run(Body body, RunOutcome* outcome = nullptr, Until until = Until::kDurable) {
    if (outcome != nullptr) *outcome = {};
    PrecedenceClaim claim;
    for (uint32_t attempt = 0;; ++attempt) {
      if (shares_thread_) co_await worker().Yield();  // lets other coroutines and other nodes' calls run
      Transaction transaction = Begin(&claim);
      transaction.RunConcludes();
      if (until == Until::kVisible) transaction.LeaveEpochAt(&outcome->durable_at);
      Status status;
      std::exception_ptr thrown;
      try {
        status = co_await body(transaction);
      } catch (...) {
        thrown = std::current_exception();
        status = Threw();
      }
      status = co_await Conclude(transaction, std::move(status));
      if (outcome != nullptr) {
        outcome->aborts = attempt;
        outcome->asked_precedence = claim.has_asked();
      }
      if (!absl::IsAborted(status)) {
        ThrowIfBelieved(status, thrown);
        co_return status;
      }
      co_await worker().SleepUntil(BackOffUntil(attempt, &claim));
    }
  }

  // Does what Run does, for a thread without coroutines. `body` returns a Task<Status>.
  Status RunBlocking(absl::FunctionRef<coro::Task<Status>(Transaction&)> body, RunOutcome* outcome = nullptr);

  // Returns `status` when `durable_at` is durable; Unknown if that takes longer than DatabaseOptions::durable_within.
  coro::Async<Status> WhenDurable(uint64_t durable_at, Status status = absl::OkStatus());

  // Begin and Commit by hand. Any number of transactions may be open. Each must end before the session. Its commit
  // waits for transactions with precedence, but never gets precedence itself: prefer Run.
  Transaction Begin();

  // The row at which the session's last transaction met a conflict, such as "table 'cities', key \"Oslo\"". Empty: it
  // met none, or one that is not about a single row, or at another node. For messages; with several open transactions
  // it may be that of another one.
  std::string last_conflict() const;

  Database& database();
  coro::Worker& worker();
  rdma::Channel& channel();
  // Counts of this session's lookups in indexes, by table name, over all remote nodes. cache_bytes are those of its
  // location caches; the learned caches belong to all sessions (Database::shared_cache_bytes).
  std::vector<std::pair<std::string, index::ClientStatistics>> client_statistics() const;
  // How its accesses reached records of other nodes, by table and kind; only those that there were.
  std::vector<TablePaths> path_statistics() const;
  // Only txn/ itself uses these. Open does what Database::OpenSession does.
  static StatusOr<std::unique_ptr<Session>> Open(DatabaseState& database);
  SessionState& state() { return *state_; }

 private:
  friend class Database;
  friend class ManualTransaction;
  explicit Session(std::unique_ptr<SessionState> state);
  static StatusOr<std::unique_ptr<Session>> Make(DatabaseState& database);
  // The outcome of the attempt, see Run.
  coro::Async<Status> Conclude(Transaction& transaction, Status body_status);
  static coro::Task<Status> BelieveIfValid(Transaction& transaction, coro::Task<Status> validation, Status body_status);
  Transaction Begin(PrecedenceClaim* claim);
  // Database::Run with this session.
  Status RunOnThread(const std::function<Status(BlockingTransaction&)>& body);
  // Stands for a body's exception where a status is needed.
  static const Status& Threw();
  static void ThrowIfBelieved(const Status& status, const std::exception_ptr& thrown) {
    if (thrown != nullptr && status == Threw()) [[unlikely]]
      std::rethrow_exception(thrown);
  }
  // Called after a conflict, which `claim` notes.
  uint64_t BackOffUntil(uint32_t attempt, PrecedenceClaim* claim);
  bool shares_thread_ = false;
  std::unique_ptr<SessionState> state_;
};

}  // namespace gannet::txn
