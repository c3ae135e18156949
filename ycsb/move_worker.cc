#include "ycsb/move_worker.h"

#include <algorithm>

#include "base/clock.h"

namespace gannet::ycsb {
namespace {

constexpr uint64_t kPaceNanos = 2'000;

double Seconds(uint64_t nanos) {
  return absl::ToDoubleSeconds(absl::Nanoseconds(static_cast<int64_t>(nanos)));
}

}  // namespace

Status MoveWorker::Prepare() {
  auto connection = Connection::Open(&cluster_, moving_.giver(), options_.caches);
  if (!connection.ok()) return connection.status();
  connection_ = *std::move(connection);
  return absl::OkStatus();
}

Status MoveWorker::Run() {
  const Status moved = connection_->worker().BlockOn(Move());
  const Status handed = connection_->HandBackIfLast(&cluster_.machine(moving_.giver()));
  return moved.ok() ? handed : moved;
}

void MoveWorker::MeasurementBegins() {
  measure_nanos_ = NowNanos();
}

coro::Task<Status> MoveWorker::Move() {
  const auto after = static_cast<uint64_t>(absl::ToInt64Nanoseconds(options_.move_after));
  uint64_t begin = 0;
  while (report_.slices < MovingPart::kMoved) {
    ObservePhase();
    if (seen() == bench::Phase::kDrain) break;
    if (seen() != bench::Phase::kMeasure || NowNanos() < measure_nanos_ + after) {
      co_await connection_->worker().SleepUntil(NowNanos() + kPaceNanos);
      continue;
    }
    const uint64_t slice = NowNanos();
    if (begin == 0) begin = slice;
    const Status moved = co_await MoveSlice();
    GANNET_CO_RETURN_IF_ERROR(moved);
    const uint64_t now = NowNanos();
    ++report_.slices;
    report_.seconds = Seconds(now - begin);
    report_.longest_slice_seconds = std::max(report_.longest_slice_seconds, Seconds(now - slice));
  }
  while (seen() != bench::Phase::kDrain) {
    co_await connection_->worker().SleepUntil(NowNanos() + kPaceNanos);
    ObservePhase();
  }
  co_return absl::OkStatus();
}

coro::Task<Status> MoveWorker::MoveSlice() {
  moving_.Give();
  while (!moving_.HasEnded()) co_await connection_->worker().SleepUntil(NowNanos() + kPaceNanos);
  for (int server = 0; server < cluster_.options().servers; ++server) {
    const MovingPart::Range keys = moving_.SliceAt(server);
    const Status handed = co_await connection_->HandBackLeaves(static_cast<rdma::NodeId>(server), keys.from, keys.to);
    GANNET_CO_RETURN_IF_ERROR(handed);
  }
  moving_.Take();
  co_return absl::OkStatus();
}

}  // namespace gannet::ycsb
