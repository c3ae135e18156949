#include "txn/run/session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/mutant.h"
#include "rdma/memory_full.h"
#include "txn/durable/durability.h"
#include "txn/run/transaction_impl.h"
#include "txn/session/session_state.h"

namespace gannet::txn {

Session::Session(std::unique_ptr<SessionState> state) : state_(std::move(state)) {}

Session::~Session() {
  if (!state_->home.is_here()) {
    static_cast<void>(state_.release());  // as ~Database
    return;
  }
  state_->local->record_bytes.Close(state_->live_bytes.get());
  state_->registry->Remove(state_->owner_bits, &state_->pending, {&state_->paths, &state_->meter});
}

Transaction Session::Begin() {
  return Begin(nullptr);
}

Transaction Session::Begin(PrecedenceClaim* claim) {
  std::vector<std::unique_ptr<OpenTransaction>>& idle = state_->idle_transactions;
  if (idle.empty()) {
    idle.push_back(std::make_unique<TransactionImpl>(state_.get()));
    state_->transactions.push_back(idle.back().get());
  }
  // All of them were made here.
  std::unique_ptr<TransactionImpl> impl(static_cast<TransactionImpl*>(idle.back().release()));
  idle.pop_back();
  impl->Begin(claim);
  return Transaction(std::move(impl));
}

coro::Async<Status> Session::Conclude(Transaction& transaction, Status body_status) {
  if (!state_->home.is_here()) [[unlikely]]  // the body has forked, and this is the child
    return state_->registry->CheckHome();
  if (body_status.ok()) return transaction.DoCommit();
  if (!transaction.failure().ok()) return transaction.failure();  // whatever the body made of it
  if (absl::IsAborted(body_status)) {                             // it asks for another attempt
    transaction.impl_->NoteAskedAgain();
    return body_status;
  }
  if (rdma::IsMemoryFull(body_status) && transaction.impl_->MayAwaitMemory()) {
    TransactionImpl* const impl = transaction.impl_.get();
    transaction.Release();
    return impl->AwaitMemory();
  }
  if (GANNET_MUTANT(kBelieveErrors)) return transaction.WhenDurable(std::move(body_status));
  coro::Async<Status> valid = transaction.Validate();
  if (!valid.ready()) return BelieveIfValid(transaction, std::move(valid.task()), std::move(body_status));
  if (!valid.value().ok()) return valid;
  return transaction.WhenDurable(std::move(body_status));
}

// A body's own error is valid only if what it read was valid, and it may be told only when that is durable.
coro::Task<Status> Session::BelieveIfValid(Transaction& transaction, coro::Task<Status> validation,
                                           Status body_status) {
  Status valid = co_await validation;
  if (!valid.ok()) co_return valid;
  coro::Async<Status> durable = transaction.WhenDurable(std::move(body_status));
  co_return co_await durable;
}

const Status& Session::Threw() {
  static const auto* const threw = new Status(absl::InternalError("the body threw an exception"));
  return *threw;
}

Status Session::RunBlocking(absl::FunctionRef<coro::Task<Status>(Transaction&)> body, RunOutcome* outcome) {
  return worker().BlockOn(Run(body, outcome));
}

Status Session::RunOnThread(const std::function<Status(BlockingTransaction&)>& body) {
  Status status;
  std::exception_ptr thrown;
  PrecedenceClaim claim;
  for (uint32_t attempt = 0;; ++attempt) {
    Transaction transaction = Begin(&claim);
    transaction.RunConcludes();
    BlockingTransaction blocking(&transaction, &worker());
    thrown = nullptr;
    try {
      status = body(blocking);
    } catch (...) {
      thrown = std::current_exception();
      status = Threw();
    }
    coro::Async<Status> concluded = Conclude(transaction, std::move(status));
    status = concluded.ready() ? std::move(concluded.value()) : worker().BlockOn(std::move(concluded.task()));
    if (!absl::IsAborted(status)) break;
    worker().BlockOn(worker().Sleep(BackOffUntil(attempt, &claim)));
  }
  ThrowIfBelieved(status, thrown);
  return status;
}

coro::Async<Status> Session::WhenDurable(uint64_t durable_at, Status status) {
  if (durable_at <= state_->durability->durable_epoch()) return status;
  return Transaction::AwaitDurable(state_.get(), durable_at, std::move(status));
}

uint64_t Session::BackOffUntil(uint32_t attempt, PrecedenceClaim* claim) {
  constexpr uint64_t kFirstNanos = 1000;
  const uint64_t now = NowNanos();
  claim->NoteConflict(state_->precedence, now);
  return now + state_->random.Below(kFirstNanos << std::min<uint32_t>(attempt, 10));
}

std::string Session::last_conflict() const {
  return state_->conflict.ToText();
}

Database& Session::database() {
  return *state_->database;
}
coro::Worker& Session::worker() {
  return state_->worker;
}
rdma::Channel& Session::channel() {
  return *state_->channel;
}

std::vector<std::pair<std::string, index::ClientStatistics>> Session::client_statistics() const {
  std::vector<std::pair<std::string, index::ClientStatistics>> result;
  const size_t nodes = static_cast<size_t>(state_->local->fabric.num_nodes());
  for (size_t place = 0; place < state_->remote_indexes.size(); ++place) {
    if (state_->remote_indexes[place] == nullptr) continue;
    const Table* const known = state_->local->TableById(static_cast<TableId>(place / nodes));
    if (known == nullptr) continue;  // it was dropped
    const std::string& table = known->name();
    if (result.empty() || result.back().first != table) result.emplace_back(table, index::ClientStatistics{});
    result.back().second += state_->remote_indexes[place]->statistics();
  }
  return result;
}

std::vector<TablePaths> Session::path_statistics() const {
  return PathsOf(state_->local->tables,
                 [this](TableId table, AccessKind kind) { return state_->paths.statistics(table, kind); });
}

}  // namespace gannet::txn
