#include "cli/crash/counters.h"

#include "rdma/base/clock.h"
#include "rdma/base/random.h"

namespace gannet::cli::crash {
namespace {

constexpr uint64_t kObserveEveryNanos = 300'000;

coro::Task<Status> ReadCounter(txn::Transaction& transaction, const txn::Table& table, uint64_t key, uint64_t* number) {
  *number = 0;
  const Status status = co_await transaction.Get(table, key, number);
  co_return absl::IsNotFound(status) ? absl::OkStatus() : status;
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
  // One transaction: over several nodes, each may wait for the log.
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
    uint64_t number = 0;
    const auto read = [&table, worker, &number](txn::Transaction& t) { return ReadCounter(t, table, worker, &number); };
    const Status status = co_await session->Run(read);
    if (!status.ok()) co_return status;
    pipe_->Send({.kind = MessageKind::kObserved, .worker = worker, .number = number});
    co_await session->worker().SleepUntil(NowNanos() + kObserveEveryNanos);
  }
}

}  // namespace gannet::cli::crash
