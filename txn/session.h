// Session: one worker thread's use of a database; runs transactions, again after conflicts.
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
#include "index/index.h"
#include "rdma/fabric.h"
#include "txn/blocking.h"
#include "txn/database.h"
#include "txn/precedence_claim.h"
#include "txn/transaction.h"

namespace gannet::txn {

struct SessionState;

// What happened to one call of Run.
struct RunOutcome {
  uint32_t aborts = 0;            // attempts that met a conflict
  bool asked_precedence = false;  // they were too many: it asked to go first (txn/commit/precedence.h)
  // Set by a Run that did not wait for the disk: nobody outside may be told of its result, an error no less than Ok,
  // before Database::durable_epoch() has reached this (Session::WhenDurable); 0: at once.
  uint64_t durable_at = 0;
};

// When Run comes back, with DurabilityMode::kSync.
enum class Until {
  kDurable,
  // As soon as others see what was written. Whoever calls sees to it that the result is told to nobody before it is
  // durable: so a thread has some transactions at work, whose memory stays in its caches, and any number of results
  // that wait.
  kVisible,
};

// Not thread-safe: belongs to the thread that uses it.
class Session {
 public:
  ~Session();

  // Runs `body` (Task<Status>(Transaction&)) until it commits: conflicts are retried after a randomised back-off.
  //
  // What an attempt comes to is decided in this order:
  //   - an operation of it failed (txn/transaction.h): that failure, whatever the body returned. Aborted: the body runs
  //     again; else Run returns it.
  //   - the body returned Aborted: it asks for another attempt, and gets one.
  //   - the body returned another error, of whatever code: its own. It is believed, and returned as it is, if the read
  //     set validates; else the body runs again.
  //   - the body returned Ok: the transaction commits. Aborted: the body runs again; else Run returns what Commit did.
  //
  // So of what Run returns, Ok is: committed; Unknown, if no body returns it itself: perhaps committed; anything else:
  // rolled back. `outcome` may be null with Until::kDurable.
  //
  // A body may throw. An exception that leaves it is treated as an error that it returned: the transaction rolls back,
  // and Run throws the exception if an error would be believed; if an operation had failed, or the read set does not
  // validate, the exception is dropped, and the body runs again or Run returns the failure.
  //
  // The body neither commits nor rolls back itself: Commit and Rollback refuse with FailedPrecondition, which Run then
  // returns.
  //
  // With DurabilityMode::kSync each result waits until what it rests on is durable: Ok, AlreadyExists, and the body's
  // own errors.
  template <class Body>
  coro::Task<Status> Run(Body body, RunOutcome* outcome = nullptr, Until until = Until::kDurable) {
    if (outcome != nullptr) *outcome = {};
    PrecedenceClaim claim;
    for (uint32_t attempt = 0;; ++attempt) {
      if (shares_thread_) co_await worker().Yield();  // other coroutines and other nodes' calls have their turn
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

  // The same for a thread without coroutines. `body` returns a Task<Status>.
  Status RunBlocking(absl::FunctionRef<coro::Task<Status>(Transaction&)> body, RunOutcome* outcome = nullptr);

  // `status` when `durable_at` is durable; Unknown if that takes longer than DatabaseOptions::durable_within.
  coro::Async<Status> WhenDurable(uint64_t durable_at, Status status = absl::OkStatus());

  // Begin / Commit by hand. Any number may be open. The transaction must end before the session. Its commit waits for
  // transactions with precedence, but it gets none itself: prefer Run.
  Transaction Begin();

  Database& database();
  coro::Worker& worker();
  rdma::Channel& channel();
  // What this session's location and learned caches hold and did, by table name, over all remote nodes.
  std::vector<std::pair<std::string, index::ClientStatistics>> client_statistics() const;
  SessionState& state() { return *state_; }  // for txn/ itself

 private:
  friend class Database;
  explicit Session(std::unique_ptr<SessionState> state);
  // What the attempt came to, see Run.
  coro::Async<Status> Conclude(Transaction& transaction, Status body_status);
  static coro::Task<Status> BelieveIfValid(Transaction& transaction, coro::Task<Status> validation, Status body_status);
  Transaction Begin(PrecedenceClaim* claim);
  // Database::Run with this session.
  Status RunOnThread(const std::function<Status(BlockingTransaction&)>& body);
  // Stands for the exception of a body where its status goes.
  static const Status& Threw();
  static void ThrowIfBelieved(const Status& status, const std::exception_ptr& thrown) {
    if (thrown != nullptr && status == Threw()) [[unlikely]]
      std::rethrow_exception(thrown);
  }
  // After a conflict, which `claim` notes.
  uint64_t BackOffUntil(uint32_t attempt, PrecedenceClaim* claim);
  // What transactions of this session still owe to other nodes (txn/commit/debts.h): waits until it is done, within
  // bounds.
  bool HasDebts() const;
  void SettleDebts();
  bool shares_thread_ = false;
  std::unique_ptr<SessionState> state_;
};

}  // namespace gannet::txn
