// The memory of a ManualTransaction: its session, its transaction, and its place among those that go first.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "txn/peer/precedence_claim.h"
#include "txn/run/manual_transaction.h"
#include "txn/run/run_sessions.h"

namespace gannet::txn {

struct ManualTransaction::Borrowed {
  explicit Borrowed(RunSessions::Borrowed from) : session(std::move(from)) {}

  // The members are destroyed in the reverse order: the transaction ends before its claim, and both before the session
  // is given back.
  RunSessions::Borrowed session;
  std::unique_ptr<PrecedenceClaim> claim = std::make_unique<PrecedenceClaim>();
  std::unique_ptr<Transaction> transaction;
  uint32_t attempts = 0;
};

}  // namespace gannet::txn
