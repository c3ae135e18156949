// JudgedTransaction: a transaction of a workload whose history goes to the checker of strict serializability.
//
// A subclass has the steps. Some bodies end with an error of their own: the reads that led to it are judged like those
// of a committed transaction. Some bodies are careless and ignore the results of operations: they must not commit after
// a failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/coro/task.h"
#include "base/random.h"
#include "base/status.h"
#include "lab/scenario/check/history.h"
#include "lab/scenario/workload/client.h"
#include "txn/run/session.h"

namespace gannet::scenario {

// If precedence is granted sooner than this, bodies ask for another attempt at times, which may cost their transactions
// a precedence.
inline constexpr uint64_t kAsksAgainNanos = 1'000'000;

// Runs one transaction at a time; attempts run the same steps, one after the other.
class JudgedTransaction {
 public:
  // Both outlive it.
  JudgedTransaction(History* history, Control* control) : history_(history), control_(control) {}
  virtual ~JudgedTransaction() = default;
  JudgedTransaction(const JudgedTransaction&) = delete;
  JudgedTransaction& operator=(const JudgedTransaction&) = delete;

  // Draws how the next transaction ends: mostly by a commit.
  void DrawEnding(Random* random);
  // It ends by a commit, after each operation that succeeds.
  void EndPlainly();
  // The body ends its next `times` attempts with Aborted, which asks for another attempt.
  void AskAgain(uint64_t times) { asks_again_ = times; }

  // Runs the transaction as client `client`, and records it in the history and in the counters.
  coro::Task<Status> Execute(txn::Session& session, uint32_t client);

  // True if Execute returned the error of a body that gave up, or AlreadyExists: nothing went wrong.
  static bool IsRefusal(const Status& status);

 protected:
  virtual size_t num_steps() const = 0;
  virtual coro::Task<Status> Do(txn::Transaction& transaction, Draft& draft, size_t step) = 0;

  // The attempt saw something that no valid transaction sees. Another transaction may have committed in between; then
  // the engine ignores the status that this returns. Otherwise the run ends.
  Status Impossible(std::string what);

  History& history() { return *history_; }
  Control& control() { return *control_; }

 private:
  coro::Task<Status> Attempt(txn::Transaction& transaction);

  History* history_;
  Control* control_;
  OperationId op_ = 0;
  absl::StatusCode reason_ = absl::StatusCode::kOk;  // code of the body's own error; kOk: it has none
  bool careless_ = false;
  uint64_t asks_again_ = 0;
  Status failure_;          // of the first operation of the last attempt that failed
  std::string impossible_;  // what the last attempt saw
};

}  // namespace gannet::scenario
