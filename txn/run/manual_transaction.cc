#include "txn/run/manual_transaction.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/coro/async.h"
#include "base/coro/worker.h"
#include "txn/run/manual_lease.h"
#include "txn/run/session.h"
#include "txn/session/session_state.h"

namespace gannet::txn {

ManualTransaction::ManualTransaction(std::unique_ptr<Lease> lease)
    : lease_(std::move(lease)), operations_(nullptr, &lease_->session.session().worker()) {
  Begin();
}

ManualTransaction::ManualTransaction(ManualTransaction&&) noexcept = default;

ManualTransaction::~ManualTransaction() {
  if (lease_ != nullptr && !lease_->session.session().state().home.is_here()) {
    static_cast<void>(lease_.release());  // as ~Database
  }
}

void ManualTransaction::Begin() {
  lease_->transaction.reset();  // its memory goes back to the session, which gives it to the next one
  Session& session = lease_->session.session();
  lease_->transaction.reset(new Transaction(session.Begin(lease_->claim.get())));
  operations_ = BlockingTransaction(lease_->transaction.get(), &session.worker());
}

Status ManualTransaction::Commit() {
  coro::Async<Status> committed = lease_->transaction->Commit();
  Session& session = lease_->session.session();
  Status status =
      committed.ready() ? std::move(committed.value()) : session.worker().BlockOn(std::move(committed.task()));
  if (!absl::IsAborted(status)) [[likely]]
    return status;
  const std::string where = session.last_conflict();
  return where.empty() ? status : absl::AbortedError(absl::StrCat(where, ": ", status.message()));
}

void ManualTransaction::Rollback() {
  lease_->transaction.reset();
  lease_->claim = std::make_unique<PrecedenceClaim>();
  lease_->attempts = 0;
  Begin();
}

bool ManualTransaction::TryAgain(const Status& status) {
  if (!absl::IsAborted(status)) return false;
  lease_->transaction.reset();  // nothing is held while it waits
  Session& session = lease_->session.session();
  coro::Worker& worker = session.worker();
  worker.BlockOn(worker.Sleep(session.BackOffUntil(lease_->attempts++, lease_->claim.get())));
  Begin();
  return true;
}

}  // namespace gannet::txn
