// The table that kv and bank share: for every worker, the number of its last operation, written by the same transaction
// as the operation's rows.
#pragma once

#include <vector>

#include "base/coro/task.h"
#include "lab/scenario/crash/message.h"
#include "lab/scenario/crash/options.h"
#include "txn/database.h"
#include "txn/run/session.h"

namespace gannet::scenario::crash {

class Counters {
 public:
  Counters(const CrashOptions& options, const MessagePipe* pipe)
      : workers_(static_cast<uint32_t>(options.workers())), pipe_(pipe), last_(workers_) {}

  Status CreateTable(txn::Database& database);
  // Sends kCounter for every worker that has one, and returns how many these are.
  StatusOr<uint64_t> Tell(txn::Database& database);
  // The counter that Tell found.
  uint64_t last(uint32_t worker) const { return last_[worker]; }

  // Called within a transaction.
  coro::Task<Status> Set(txn::Transaction& transaction, uint32_t worker, uint64_t number) const;
  // Reads random counters and reports what it saw, by transactions that commit and by transactions that end with an
  // error.
  coro::Task<Status> Observe(txn::Session* session, uint64_t seed) const;

 private:
  const txn::Table& TableOf(txn::Database& database) const { return *database.FindTable("counter"); }

  uint32_t workers_;
  const MessagePipe* pipe_;
  std::vector<uint64_t> last_;
};

}  // namespace gannet::scenario::crash
