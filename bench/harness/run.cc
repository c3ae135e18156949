#include "bench/harness/run.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/stop.h"
#include "base/thread.h"
#include "bench/harness/operation_statistics.h"

namespace gannet::bench {
namespace {

uint64_t Nanos(absl::Duration duration) {
  return static_cast<uint64_t>(absl::ToInt64Nanoseconds(duration));
}

class Driver {
 public:
  Driver(std::span<Worker* const> workers, RunControl* control, const RunOptions& options, const Hooks& hooks)
      : workers_(workers),
        control_(*control),
        options_(options),
        hooks_(hooks),
        kinds_(workers.empty() ? 0 : workers.front()->kinds()),
        latencies_before_(kinds_),
        aborts_before_(kinds_) {}

  StatusOr<RunResult> Run() {
    Latch prepared(workers_.size() + 1);
    Latch begin(workers_.size() + 1);
    std::vector<Thread> threads;
    for (Worker* worker : workers_) {
      threads.emplace_back(hooks_.thread_name, [this, worker, &prepared, &begin] {
        const bool ready = Try(worker->Prepare());
        prepared.arrive_and_wait();
        if (hooks_.prepared) begin.arrive_and_wait();
        if (ready) Try(worker->Run());
        worker->Close();
      });
    }
    prepared.arrive_and_wait();
    if (hooks_.prepared) {
      if (!Ended()) hooks_.prepared();
      begin.arrive_and_wait();
    }
    begin_nanos_ = NowNanos();
    Watch(options_.warmup, 0, nullptr);
    if (options_.watch) options_.watch(false);
    const uint64_t measure_nanos = NowNanos();
    control_.Advance(Phase::kMeasure);
    Watch(options_.duration, options_.at_least, hooks_.is_done);
    control_.Advance(Phase::kDrain);
    result_.seconds = static_cast<double>(NowNanos() - measure_nanos) * 1e-9;
    if (options_.watch) options_.watch(true);
    for (Thread& thread : threads) thread.join();
    GANNET_RETURN_IF_ERROR(control_.error());
    for (const Worker* worker : workers_) result_.verbs += worker->verbs();
    return std::move(result_);
  }

 private:
  // True if `status` is Ok; an error ends the run.
  bool Try(Status status) {
    if (status.ok()) return true;
    control_.Fail(std::move(status));
    return false;
  }

  // True if a worker failed, or the run was stopped.
  bool Ended() const { return control_.phase() == Phase::kDrain || IsStopRequested(options_.stop); }

  // Waits for `duration`, `at_least` operations and `is_done`, or until the run has ended, and reports after each
  // interval.
  void Watch(absl::Duration duration, uint64_t at_least, const std::function<bool()>& is_done) {
    last_nanos_ = NowNanos();
    const uint64_t end = last_nanos_ + Nanos(duration);
    const uint64_t enough = last_counts_[0] + at_least;
    while ((last_nanos_ < end || last_counts_[0] < enough || (is_done && !is_done())) && !Ended()) {
      const uint64_t next = last_nanos_ + Nanos(options_.interval);
      WaitWhileRunning(last_nanos_ < end ? std::min(end, next) : next, [this] { return Ended(); });
      ReportInterval();
    }
  }

  void ReportInterval() {
    const uint64_t now = NowNanos();
    const Phase phase = control_.phase();
    CountedInterval interval;
    interval.warming_up = phase == Phase::kWarmup;
    interval.at_seconds = static_cast<double>(now - begin_nanos_) * 1e-9;
    interval.seconds = static_cast<double>(now - last_nanos_) * 1e-9;
    for (size_t i = 0; i < kLiveCounts; ++i) {
      uint64_t count = 0;
      for (const Worker* worker : workers_) count += worker->live(i);
      interval.counts[i] = count - last_counts_[i];
      last_counts_[i] = count;
    }
    AddKinds(&interval);
    last_nanos_ = now;
    if (phase == Phase::kMeasure) result_.timeline.push_back(interval);
    if (hooks_.interval) hooks_.interval(interval);
  }

  // What each kind of operation did since the last call: the difference of two sums over the workers.
  void AddKinds(Interval* interval) {
    Histogram all;
    uint64_t all_aborts = 0;
    for (size_t kind = 0; kind < kinds_; ++kind) {
      Histogram so_far;
      uint64_t aborts = 0;
      for (const Worker* worker : workers_) {
        worker->AddLatencies(kind, &so_far);
        aborts += worker->aborts(kind);
      }
      Histogram latencies = so_far;
      latencies.Subtract(latencies_before_[kind]);
      latencies_before_[kind] = so_far;
      KindInterval& each = interval->kinds.emplace_back(KindIntervalOf(latencies));
      each.aborts = aborts - aborts_before_[kind];
      aborts_before_[kind] = aborts;
      all_aborts += each.aborts;
      all.Merge(latencies);
    }
    interval->all = KindIntervalOf(all);
    interval->all.aborts = all_aborts;
  }

  const std::span<Worker* const> workers_;
  RunControl& control_;
  const RunOptions& options_;
  const Hooks& hooks_;
  const size_t kinds_;
  std::vector<Histogram> latencies_before_;  // by kind, until the last interval
  std::vector<uint64_t> aborts_before_;
  uint64_t begin_nanos_ = 0;
  uint64_t last_nanos_ = 0;
  std::array<uint64_t, kLiveCounts> last_counts_{};
  RunResult result_;
};

}  // namespace

Status CheckDurations(const RunOptions& options) {
  if (options.duration > absl::ZeroDuration() && options.warmup >= absl::ZeroDuration() &&
      options.interval > absl::ZeroDuration()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("duration and interval must be positive, warm-up not negative");
}

StatusOr<RunResult> RunWorkers(std::span<Worker* const> workers, RunControl* control, const RunOptions& options,
                               const Hooks& hooks) {
  return Driver(workers, control, options, hooks).Run();
}

}  // namespace gannet::bench
