#include "txn/session/transaction_impl.h"

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"
#include "base/mutant.h"

namespace gannet::txn {

void TransactionImpl::Begin(PrecedenceClaim* claim) {
  GANNET_CHECK(!active_, "a transaction began twice");
  claim_ = claim;
  entered_ = session_->participant->Enter();
  Charge(Cost::kTransaction);
  active_ = true;
}

void TransactionImpl::Restart() {
  End();
  Begin(claim_);
}

void TransactionImpl::End() {
  if (!active_) return;
  for (WriteEntry& entry : writes().entries()) ReleaseDirect(*session_, entry);
  commit_.reset();
  access_.Clear();
  active_ = false;
  session_->participant->Leave(entered_);
}

coro::Async<Status> TransactionImpl::Commit() {
  return commit_.emplace(session_, &access_, claim_, &scratch_).Run();
}

coro::Async<Status> TransactionImpl::Validate() {
  coro::Async<Status> valid = commit_.emplace(session_, &access_, claim_, &scratch_).Validate();
  if (!valid.ready()) return NoteFailureOf(std::move(valid.task()));
  return valid.value().ok() ? std::move(valid.value()) : access_.failure().Note(std::move(valid.value()));
}

coro::Task<Status> TransactionImpl::NoteFailureOf(coro::Task<Status> validation) {
  Status valid = co_await validation;
  if (!valid.ok()) co_return access_.failure().Note(std::move(valid));
  co_return valid;
}

// A transaction that only read waits for the newest epoch in which anything was logged here: what it read is of that or
// an earlier one. What it read at other nodes is not later than the epoch that it found there (AskForEpochs). A commit
// over several nodes that failed because a key exists has an epoch, too, taken after that key was found.
uint64_t TransactionImpl::EpochToAwait() const {
  const CommitLog& log = *session_->log;
  if (GANNET_MUTANT(kAcknowledgeEarly) || !log.awaits_durability()) return 0;
  // It depends on nothing then. A record to update or remove was read, too, although a commit that failed because of
  // another insert has not put it among the reads.
  const bool read_nothing =
      access_.reads().empty() && std::ranges::all_of(access_.writes().entries(), [](const WriteEntry& entry) {
        return entry.kind == WriteKind::kInsert;
      });
  const uint64_t epoch = commit_.has_value() ? commit_->epoch() : 0;
  const bool logged = commit_.has_value() && commit_->logged();
  return log.EpochToAwait(epoch, /*rests_on_reads=*/!logged && !read_nothing);
}

}  // namespace gannet::txn
