#include "lab/experiments/kind_rack/client.h"

#include <utility>

#include "base/clock.h"

namespace gannet::experiments::kind_rack {

Status Client::Prepare() {
  auto session = options_.database->OpenSession();
  if (!session.ok()) return session.status();
  session_ = *std::move(session);
  table_ = options_.database->FindTable(kTable);
  return absl::OkStatus();
}

Status Client::Run() {
  session_->worker().Spawn(Loop());
  session_->worker().Run();
  return absl::OkStatus();
}

index::ClientStatistics Client::IndexStatistics() const {
  index::ClientStatistics sum;
  for (const auto& [table, statistics] : session_->client_statistics()) sum += statistics;
  return sum;
}

void Client::MeasurementBegins() {
  index_before_ = IndexStatistics();
  paths_before_ = session_->path_statistics();
}

void Client::MeasurementEnds() {
  report_.index = IndexStatistics();
  report_.index.lookups -= index_before_.lookups;
  report_.index.fallbacks -= index_before_.fallbacks;
  report_.paths = txn::PathsBetween(paths_before_, session_->path_statistics());
}

coro::Task<void> Client::Loop() {
  while (true) {
    ObservePhase();
    if (seen() == bench::Phase::kDrain) break;
    read_ = 0;
    txn::RunOutcome outcome;
    const uint64_t start = NowNanos();
    Status done = co_await Operate(&outcome);
    const uint64_t nanos = NowNanos() - start;
    if (!done.ok()) {
      control().Fail(std::move(done));
      break;
    }
    CountLive(0, 1);
    ObservePhase();
    if (seen() != bench::Phase::kMeasure) continue;
    report_.latency.Record(nanos);
    report_.rows += read_;
    report_.aborted += outcome.aborts;
  }
}

coro::Task<Status> Client::Operate(txn::RunOutcome* outcome) {
  const Rows& rows = *options_.rows;
  if (options_.work == Work::kInsert || options_.work == Work::kAppend) {
    const uint64_t row = rows.loaded() + options_.number + options_.clients * inserted_++;
    const bool append = options_.work == Work::kAppend;
    co_return co_await Insert(rows.KeyOf(row, append ? ycsb::InsertPlace::kAppend : ycsb::InsertPlace::kSpread),
                              outcome);
  }
  const uint64_t row = rows.DrawLoaded(random_);
  if (options_.work == Work::kScan) co_return co_await Scan(row, outcome);
  if (options_.work == Work::kHalfUpdates && random_.Below(2) == 0) co_return co_await Update(rows.KeyOf(row), outcome);
  co_return co_await Read(rows.KeyOf(row), outcome);
}

coro::Task<Status> Client::Read(const RowKey& key, txn::RunOutcome* outcome) {
  Status status = co_await session_->Run(
      [&](txn::Transaction& transaction) -> coro::Task<Status> {
        co_return co_await transaction.Get(*table_, key.view(), payload_);
      },
      outcome);
  if (status.ok()) status = Rows::CheckPayload(key.view(), payload_);
  read_ = 1;
  co_return status;
}

coro::Task<Status> Client::Update(const RowKey& key, txn::RunOutcome* outcome) {
  Rows::MakePayload(key.integer(), random_(), payload_);
  co_return co_await session_->Run(
      [&](txn::Transaction& transaction) -> coro::Task<Status> {
        co_return co_await transaction.Update(*table_, key.view(), payload_);
      },
      outcome);
}

coro::Task<Status> Client::Insert(const RowKey& key, txn::RunOutcome* outcome) {
  Rows::MakePayload(key.integer(), random_(), payload_);
  co_return co_await session_->Run(
      [&](txn::Transaction& transaction) -> coro::Task<Status> {
        co_return transaction.Insert(*table_, key.view(), payload_);
      },
      outcome);
}

coro::Task<Status> Client::Scan(uint64_t row, txn::RunOutcome* outcome) {
  const Rows& rows = *options_.rows;
  const RowKey from = rows.KeyOf(row);
  const index::ScanRange range = {.from = from.view(), .to = UINT64_MAX, .limit = kScanRows};
  const index::Rectangle window = rows.WindowAround(row);
  Status status = co_await session_->Run(
      [&](txn::Transaction& transaction) -> coro::Task<Status> {
        if (rows.spatial()) co_return co_await transaction.Search(*table_, window, &found_);
        co_return co_await transaction.Scan(*table_, range, &found_);
      },
      outcome);
  read_ = found_.size();
  if (status.ok() && found_.empty()) status = absl::DataLossError("a scan did not return the row that it began at");
  for (size_t i = 0; status.ok() && i < found_.size(); ++i) {
    status = Rows::CheckPayload(found_.key(i), found_.payload(i));
  }
  co_return status;
}

}  // namespace gannet::experiments::kind_rack
