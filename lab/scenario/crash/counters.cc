#include "lab/scenario/crash/counters.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/random.h"

namespace gannet::scenario::crash {
namespace {

constexpr uint64_t kObserveEveryNanos = 300'000;

constexpr uint64_t kNoWorker = UINT64_MAX;  // its counter is never there

// How a transaction that read a counter ends, so that its caller learns what it read. Each of these tells the caller,
// so with sync the value must be durable by then.
enum class Ending : uint8_t {
  kOk,
  kVisible,        // Ok before it is durable: the caller waits
  kOwnError,       // the body's
  kNotFound,       // of another key, returned by the body
  kAlreadyExists,  // of the counter, by the commit
  kCount,
};

absl::StatusCode CodeOf(Ending ending) {
  switch (ending) {
    case Ending::kOwnError:
      return absl::StatusCode::kOutOfRange;
    case Ending::kNotFound:
      return absl::StatusCode::kNotFound;
    case Ending::kAlreadyExists:
      return absl::StatusCode::kAlreadyExists;
    default:
      return absl::StatusCode::kOk;
  }
}

// Ok, with *number 0, if there is no counter.
coro::Task<Status> ReadCounter(txn::Transaction& transaction, const txn::Table& table, uint64_t key, Ending ending,
                               uint64_t* number) {
  *number = 0;
  const Status status = co_await transaction.Get(table, key, number);
  if (absl::IsNotFound(status)) co_return absl::OkStatus();
  if (!status.ok()) co_return status;
  uint64_t nothing = 0;
  switch (ending) {
    case Ending::kOwnError:
      co_return absl::OutOfRangeError("the body's own error");
    case Ending::kNotFound:
      co_return co_await transaction.Get(table, kNoWorker, &nothing);
    case Ending::kAlreadyExists:
      co_return transaction.Insert(table, key, nothing);
    default:
      co_return absl::OkStatus();
  }
}

}  // namespace

Status Counters::CreateTable(txn::Database& database) {
  return database
      .CreateTable({.name = "counter",
                    .payload_bytes = sizeof(uint64_t),
                    .expected_rows = workers_,
                    .placement = txn::Placement::ByHash()})
      .status();
}

StatusOr<uint64_t> Counters::Tell(txn::Database& database) {
  // One transaction, because over several nodes each may wait for the log.
  std::vector<txn::GetRequest> requests;
  GANNET_RETURN_IF_ERROR(database.Run([&](txn::BlockingTransaction& t) {
    requests.clear();
    for (uint32_t worker = 0; worker < workers_; ++worker) {
      requests.push_back(txn::GetRequest::Of(TableOf(database), uint64_t{worker}, &last_[worker]));
    }
    return t.GetMany(requests);
  }));
  uint64_t found = 0;
  for (uint32_t worker = 0; worker < workers_; ++worker) {
    if (absl::IsNotFound(requests[worker].status)) continue;
    GANNET_RETURN_IF_ERROR(requests[worker].status);
    pipe_->Send({.kind = MessageKind::kCounter, .worker = worker, .number = last_[worker]});
    ++found;
  }
  return found;
}

coro::Task<Status> Counters::Set(txn::Transaction& transaction, uint32_t worker, uint64_t number) const {
  const txn::Table& table = TableOf(transaction.session().database());
  uint64_t old = 0;
  const StatusOr<txn::RecordHandle> handle = co_await transaction.GetForUpdate(table, uint64_t{worker}, &old);
  if (absl::IsNotFound(handle.status())) co_return transaction.Insert(table, uint64_t{worker}, number);
  if (!handle.ok()) co_return handle.status();
  if (old + 1 != number) co_return absl::DataLossError("a worker's counter is not where the worker left it");
  co_return transaction.Update(*handle, number);
}

coro::Task<Status> Counters::Observe(txn::Session* session, uint64_t seed) const {
  Random random(seed);
  const txn::Table& table = TableOf(session->database());
  while (true) {
    const auto worker = static_cast<uint32_t>(random.Below(workers_));
    const auto ending = static_cast<Ending>(random.Below(static_cast<uint64_t>(Ending::kCount)));
    uint64_t number = 0;
    const auto read = [&table, worker, ending, &number](txn::Transaction& t) {
      return ReadCounter(t, table, worker, ending, &number);
    };
    txn::RunOutcome outcome;
    const auto until = ending == Ending::kVisible ? txn::Until::kVisible : txn::Until::kDurable;
    Status status = co_await session->Run(read, &outcome, until);
    if (ending == Ending::kVisible) status = co_await session->WhenDurable(outcome.durable_at, std::move(status));
    if (ending == Ending::kAlreadyExists && absl::IsFailedPrecondition(status)) {  // a load is not durable
      co_await session->worker().SleepUntil(NowNanos() + kObserveEveryNanos);
      continue;
    }
    if (status.code() != (number == 0 ? absl::StatusCode::kOk : CodeOf(ending))) {
      co_return absl::InternalError(absl::StrCat(
          "a transaction that read a counter and then had to end in another way ended with: ", status.ToString()));
    }
    pipe_->Send({.kind = MessageKind::kObserved, .worker = worker, .number = number});
    co_await session->worker().SleepUntil(NowNanos() + kObserveEveryNanos);
  }
}

}  // namespace gannet::scenario::crash
