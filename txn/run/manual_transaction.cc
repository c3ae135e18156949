#include "txn/run/manual_transaction.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/coro/async.h"
#include "base/coro/worker.h"
#include "txn/run/manual_session.h"
#include "txn/run/session.h"
#include "txn/session/session_state.h"

namespace gannet::txn {

ManualTransaction::ManualTransaction(std::unique_ptr<Borrowed> borrowed)
    : borrowed_(std::move(borrowed)), operations_(nullptr, &borrowed_->session.session().worker()) {
  Begin();
}

ManualTransaction::ManualTransaction(ManualTransaction&&) noexcept = default;

ManualTransaction::~ManualTransaction() {
  if (borrowed_ != nullptr && !borrowed_->session.session().state().home.is_here()) {
    static_cast<void>(borrowed_.release());  // as ~Database
  }
}

void ManualTransaction::Begin() {
  borrowed_->transaction.reset();  // its memory goes back to the session, which gives it to the next one
  Session& session = borrowed_->session.session();
  borrowed_->transaction.reset(new Transaction(session.Begin(borrowed_->claim.get())));
  operations_ = BlockingTransaction(borrowed_->transaction.get(), &session.worker());
}

Status ManualTransaction::Commit() {
  coro::Async<Status> committed = borrowed_->transaction->Commit();
  Session& session = borrowed_->session.session();
  Status status =
      committed.ready() ? std::move(committed.value()) : session.worker().BlockOn(std::move(committed.task()));
  if (!absl::IsAborted(status)) [[likely]]
    return status;
  const std::string where = session.last_conflict();
  return where.empty() ? status : absl::AbortedError(absl::StrCat(where, ": ", status.message()));
}

void ManualTransaction::Rollback() {
  borrowed_->transaction.reset();
  borrowed_->claim = std::make_unique<PrecedenceClaim>();
  borrowed_->attempts = 0;
  Begin();
}

bool ManualTransaction::TryAgain(const Status& status) {
  if (!absl::IsAborted(status)) return false;
  borrowed_->transaction.reset();  // nothing is held while it waits
  Session& session = borrowed_->session.session();
  coro::Worker& worker = session.worker();
  worker.BlockOn(worker.Sleep(session.BackOffUntil(borrowed_->attempts++, borrowed_->claim.get())));
  Begin();
  return true;
}

}  // namespace gannet::txn
