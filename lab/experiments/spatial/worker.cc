#include "lab/experiments/spatial/worker.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/clock.h"

namespace gannet::experiments {
namespace {

using index::Rectangle;
using index::RectangleKey;
using index::RectangleKeyBytes;

// Ids of the clients' inserts are above those of the loaded rectangles, and each client has its own.
constexpr int kClientShift = 40;

}  // namespace

void MakePayload(uint64_t id, std::span<std::byte> payload) {
  std::memset(payload.data(), static_cast<int>(id % 251), payload.size());
  std::memcpy(payload.data(), &id, std::min(payload.size(), sizeof id));
}

Status SpatialWorker::Prepare() {
  auto session = options_.database->OpenSession();
  if (!session.ok()) return session.status();
  session_ = *std::move(session);
  table_ = options_.database->FindTable(kRectangles);
  payload_.resize(options_.run->payload_bytes);
  if (!options_.run->index_only.has_value()) return absl::OkStatus();
  auto index = index::ConnectCatfish(&session_->channel(), 0, table_->id(), *options_.run->index_only);
  if (!index.ok()) return index.status();
  index_ = *std::move(index);
  return absl::OkStatus();
}

Status SpatialWorker::Run() {
  session_->worker().Spawn(Loop());
  session_->worker().Run();
  if (index_ != nullptr) statistics_.index = index_->statistics();
  return absl::OkStatus();
}

void SpatialWorker::Close() {
  index_.reset();
  session_.reset();
}

void SpatialWorker::MeasurementEnds() {
  statistics_.paths = txn::PathsBetween(paths_before_, session_->path_statistics());
}

coro::Task<void> SpatialWorker::Loop() {
  while (true) {
    ObservePhase();
    if (seen() == bench::Phase::kDrain) break;
    const bool inserts = random_.Below(100) < static_cast<uint64_t>(options_.run->insert_percent);
    met_ = 0;
    aborted_ = 0;
    const uint64_t start = NowNanos();
    Status done;
    if (inserts) {
      done = co_await Insert(options_.data->DrawInsert(random_));
    } else if (index_ != nullptr) {
      done = co_await SearchIndex(options_.data->DrawWindow(random_));
    } else {
      done = co_await Search(options_.data->DrawWindow(random_));
    }
    const uint64_t nanos = NowNanos() - start;
    if (!done.ok()) {
      control().Fail(std::move(done));
      break;
    }
    CountLive(0, 1);
    ObservePhase();
    if (seen() != bench::Phase::kMeasure) continue;
    statistics_.all.Record(nanos);
    if (!inserts) statistics_.searches.Record(nanos);
    statistics_.inserts += inserts ? 1 : 0;
    statistics_.rows += met_;
    statistics_.aborted += aborted_;
  }
}

coro::Task<Status> SpatialWorker::Search(Rectangle window) {
  txn::RunOutcome outcome;
  Status status = co_await session_->Run(
      [&](txn::Transaction& transaction) -> coro::Task<Status> {
        Status searched = co_await transaction.Search(*table_, window, &rows_);
        co_return searched;
      },
      &outcome);
  aborted_ = outcome.aborts;
  met_ = rows_.size();
  if (status.ok()) status = CheckRows(window);
  co_return status;
}

Status SpatialWorker::CheckRows(const Rectangle& window) const {
  for (size_t i = 0; i < rows_.size(); ++i) {
    const StatusOr<RectangleKey> key = index::DecodeRectangleKey(rows_.key(i));
    const std::span<const std::byte> payload = rows_.payload(i);
    uint64_t id = 0;
    std::memcpy(&id, payload.data(), std::min(payload.size(), sizeof id));
    if (!key.ok() || !key->box.Meets(window) || key->id != id || payload.size() != payload_.size()) {
      return absl::DataLossError(absl::StrFormat("a search of %s returned a wrong row", window.ToString()));
    }
  }
  return absl::OkStatus();
}

coro::Task<Status> SpatialWorker::SearchIndex(Rectangle window) {
  found_ = {};
  Status status = co_await index_->Search({.window = window, .at_one_moment = true}, &found_);
  met_ = found_.entries.size();
  co_return status;
}

coro::Task<Status> SpatialWorker::Insert(Rectangle box) {
  const uint64_t id = (options_.number + 1) << kClientShift | inserted_++;
  const RectangleKeyBytes key({box, id});
  MakePayload(id, payload_);
  txn::RunOutcome outcome;
  Status status = co_await session_->Run(
      [&](txn::Transaction& transaction) -> coro::Task<Status> {
        co_return transaction.Insert(*table_, key.view(), payload_);
      },
      &outcome);
  aborted_ = outcome.aborts;
  co_return status;
}

}  // namespace gannet::experiments
