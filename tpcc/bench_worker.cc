#include "tpcc/bench_worker.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "tpcc/repair_patience.h"
#include "tpcc/table_scan.h"

namespace gannet::tpcc {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

// Clause 5.2.5: keying time, and mean think time, in seconds.
struct Pace {
  uint64_t keying;
  double thinking;
};
constexpr std::array<Pace, kProcedures> kPaces = {{{18, 12}, {3, 12}, {2, 10}, {2, 5}, {2, 5}}};

// A time with a negative exponential distribution, cut at ten times its mean (clause 5.2.5.4).
uint64_t ThinkNanos(Random& random, double mean_seconds) {
  const double seconds = std::min(-std::log(1 - random.Unit()) * mean_seconds, 10 * mean_seconds);
  return static_cast<uint64_t>(seconds * static_cast<double>(kSecond));
}

}  // namespace

Status BenchWorker::Prepare() {
  StatusOr<std::unique_ptr<txn::Session>> session = options_.database->OpenSession();
  if (!session.ok()) return session.status();
  session_ = *std::move(session);
  unix_offset_ns_ = WallNanos() - NowNanos();
  deck_ = std::make_unique<Deck>(options_.run->mix);
  office_ = std::make_unique<Office>(MakeSource(0).warehouses);
  office_->numbers.worker = options_.number;
  GANNET_RETURN_IF_ERROR(FindNextPayment());
  const size_t terminals =
      options_.run->think_time ? options_.homes.size() * kDistricts : static_cast<size_t>(options_.coroutines);
  for (size_t i = 0; i < terminals; ++i) {
    InputSource source = MakeSource(i);
    if (options_.run->think_time) source.terminal_district = static_cast<uint32_t>(i % kDistricts) + 1;
    terminals_.push_back(std::make_unique<Terminal>(session_.get(), options_.tables, source, office_.get()));
  }
  return absl::OkStatus();
}

Status BenchWorker::FindNextPayment() {
  txn::ScanRows rows;
  for (const uint32_t w : options_.homes) {
    for (uint32_t d = 1; d <= kDistricts; ++d) {
      const index::ScanRange range{.from = HistoryKey(w, d, office_->numbers.worker, 0),
                                   .to = HistoryKey(w, d, office_->numbers.worker, UINT32_MAX),
                                   .reverse = true,
                                   .limit = 1};
      const txn::Table& history = *options_.tables->history;
      GANNET_RETURN_IF_ERROR(RunPatiently(*session_, [&](txn::Transaction& transaction) {
        return ScanOnce(transaction, history, range, &rows, {.keys_only = true});
      }));
      if (rows.empty()) continue;
      office_->numbers.next = std::max(office_->numbers.next, SequenceOf(rows.key(0).integer()) + 1);
    }
  }
  return absl::OkStatus();
}

InputSource BenchWorker::MakeSource(uint64_t stream) const {
  return {.random = Random(Mix64(options_.seed) + stream),
          .non_uniform = options_.non_uniform,
          .scale = options_.tables->scale,
          .warehouses = options_.tables->warehouses,
          .now = 0};
}

Status BenchWorker::Run() {
  for (size_t i = 0; i < terminals_.size(); ++i) {
    const uint32_t home = options_.run->think_time ? options_.homes[i / kDistricts] : 0;
    session_->worker().Spawn(Loop(terminals_[i].get(), home));
  }
  if (runs_ahead()) session_->worker().AddPoller([this] { return TellDurable(); });  // also while all coroutines wait
  session_->worker().Run();
  Status told = session_->worker().BlockOn(AwaitResults(0));
  ObservePhase();
  statistics_.client_caches = session_->client_statistics();
  return told;
}

void BenchWorker::Close() {
  terminals_.clear();
  session_.reset();
}

coro::Task<void> BenchWorker::Loop(Terminal* terminal, uint32_t home) {
  const bool think = options_.run->think_time;
  while (control().phase() != bench::Phase::kDrain) {
    const Procedure procedure = deck_->Deal(terminal->random());
    const Pace& pace = kPaces[static_cast<size_t>(procedure)];
    if (think) {
      co_await SleepWhileRunning(pace.keying * kSecond);
      if (control().phase() == bench::Phase::kDrain) break;
    }
    Status status;
    if (runs_ahead()) {
      TellDurable();  // a coroutine that never suspends never lets the pollers run
      status = co_await AwaitResults(static_cast<size_t>(options_.run->in_flight - options_.coroutines));
    }
    if (status.ok()) status = co_await RunOne(terminal, procedure, home);
    if (!status.ok() && !IsRolledBack(status)) {
      control().Fail(absl::Status(
          status.code(), absl::StrFormat("%s: %s", kProcedureNames[static_cast<size_t>(procedure)], status.message())));
      break;
    }
    if (think) co_await SleepWhileRunning(ThinkNanos(terminal->random(), pace.thinking));
  }
}

coro::Task<Status> BenchWorker::RunOne(Terminal* terminal, Procedure procedure, uint32_t home) {
  const std::vector<uint32_t>& homes = options_.homes;
  const uint32_t w = home != 0 ? home : homes[terminal->random().Below(homes.size())];
  // With one node there are no verbs to attribute.
  const bool several = terminals_.size() > 1 && session_->database().fabric().num_nodes() > 1;
  const bool sampled = !several || --until_sample_ == 0;
  if (several) {
    if (sampled) until_sample_ = kVerbSampleInterval;
    co_await Enter(sampled);
  }
  const rdma::VerbCounters before = session_->channel().counters();
  terminal->Draw(procedure, w, Today(NowNanos()));
  const uint64_t start = NowNanos();
  const txn::Until until = runs_ahead() ? txn::Until::kVisible : txn::Until::kDurable;
  txn::RunOutcome outcome;
  RepairPatience patience(&session_->database());
  Status status = co_await terminal->Run(procedure, &outcome, until);
  while (patience.RunAgain(status)) {
    co_await session_->worker().SleepUntil(NowNanos() + RepairPatience::kTryAgainNanos);
    status = co_await terminal->Run(procedure, &outcome, until);
  }
  if (several) Leave(sampled);

  ObservePhase();
  if (status.ok() || IsRolledBack(status)) {
    const Result result{
        .durable_at = outcome.durable_at,
        .begun_nanos = start,
        .procedure = procedure,
        .committed = status.ok(),
        .skipped_districts = procedure == Procedure::kDelivery ? terminal->skipped_districts() : uint8_t{0},
        .aborts = outcome.aborts};
    outcome.durable_at == 0 ? Record(result, NowNanos()) : unacknowledged_.Add(result);
  }
  if (sampled && seen() == bench::Phase::kMeasure) {
    ProcedureStatistics& statistics = statistics_.procedures[static_cast<size_t>(procedure)];
    statistics.SampleVerbs(session_->channel().counters() - before);
  }
  co_return status;
}

coro::Task<void> BenchWorker::Enter(bool alone) {
  while (gate_.exclusive) co_await session_->worker().Yield();
  if (alone) {
    gate_.exclusive = true;
    while (gate_.inside > 0) co_await session_->worker().Yield();
  }
  ++gate_.inside;
}

void BenchWorker::Leave(bool alone) {
  --gate_.inside;
  if (alone) gate_.exclusive = false;
}

coro::Task<void> BenchWorker::SleepWhileRunning(uint64_t nanos) {
  constexpr uint64_t kSlice = kSecond / 10;
  const uint64_t until = NowNanos() + nanos;
  for (uint64_t now = NowNanos(); now < until && control().phase() != bench::Phase::kDrain; now = NowNanos()) {
    ObservePhase();
    co_await session_->worker().SleepUntil(std::min(until, now + kSlice));
  }
}

coro::Task<Status> BenchWorker::AwaitResults(size_t most) {
  while (unacknowledged_.size() > most) {
    coro::Async<Status> durable = session_->WhenDurable(unacknowledged_.next_epoch());
    Status status = co_await durable;
    if (!status.ok()) co_return status;
    TellDurable();
  }
  co_return absl::OkStatus();
}

size_t BenchWorker::TellDurable() {
  if (unacknowledged_.empty()) return 0;
  const uint64_t durable = session_->database().durable_epoch();
  if (durable < unacknowledged_.next_epoch()) return 0;
  ObservePhase();
  const uint64_t now = NowNanos();
  return unacknowledged_.TakeDurable(durable, [&](const Result& result) { Record(result, now); });
}

void BenchWorker::Record(const Result& result, uint64_t now_nanos) {
  CountLive(kTransactions, 1);
  CountLive(kAborts, result.aborts);
  if (result.committed && result.procedure == Procedure::kNewOrder) CountLive(kNewOrders, 1);
  const auto procedure = static_cast<size_t>(result.procedure);
  RecordOperation(procedure, now_nanos - result.begun_nanos, result.aborts);
  if (seen() != bench::Phase::kMeasure) return;
  ProcedureStatistics& statistics = statistics_.procedures[procedure];
  ++(result.committed ? statistics.committed : statistics.rolled_back);
  statistics.aborted += result.aborts;
  statistics_.skipped_deliveries += result.skipped_districts > 0 ? 1 : 0;
  statistics_.skipped_districts += result.skipped_districts;
}

}  // namespace gannet::tpcc
