// The life of a run, in virtual time: what counts, what an error does, and what a stop does, in each phase.
#include "bench/harness/run.h"

#include <atomic>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rdma/sim/simulation.h"

namespace gannet::bench {
namespace run_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::IsEmpty;
using ::testing::Le;

constexpr uint64_t kOperationNanos = 1'000'000;
constexpr uint64_t kReadsPerOperation = 2;
constexpr uint64_t kOther = 3;  // another live count
constexpr size_t kKinds = 3;    // one operation is of kind 0, the next of kind 1; none of kind 2

// How a worker misbehaves. Operations are counted from 1; 0: never.
struct Script {
  Status prepare = absl::OkStatus();
  uint64_t fail_at = 0;
  uint64_t stop_at = 0;           // sets *stop
  uint64_t drain_operations = 0;  // at the end of the run
  bool fail_in_drain = false;
  bool stop_in_drain = false;
  std::atomic<bool>* stop = nullptr;
};

// Its operations take 1 ms and 2 READs each.
class FakeWorker final : public Worker {
 public:
  FakeWorker(RunControl* control, Script script) : Worker(control, kKinds), script_(std::move(script)) {}

  Status Prepare() override {
    SleepForNanos(kOperationNanos);
    prepared_ = true;
    return script_.prepare;
  }

  Status Run() override {
    ran_ = true;
    for (uint64_t n = 1;; ++n) {
      ObservePhase();
      if (seen() == Phase::kDrain) break;
      Operation();
      ObservePhase();
      CountLive(0, 1);
      CountLive(kOther, 10);
      RecordOperation(n % 2, (1 + n % 2) * kOperationNanos, n % 2 == 0 ? 3 : 0);
      if (seen() == Phase::kMeasure) ++measured_;
      if (n == script_.fail_at) return absl::DataLossError("failed on purpose");
      if (n == script_.stop_at) script_.stop->store(true);
    }
    for (uint64_t n = 0; n < script_.drain_operations; ++n) Operation();
    if (script_.stop_in_drain) script_.stop->store(true);
    return script_.fail_in_drain ? absl::DataLossError("failed on purpose") : absl::OkStatus();
  }

  void Close() override { ++closed_; }

  bool prepared() const { return prepared_; }
  bool ran() const { return ran_; }
  int closed() const { return closed_; }
  uint64_t measured() const { return measured_; }
  int begun() const { return begun_; }
  int ended() const { return ended_; }

 private:
  void Operation() {
    SleepForNanos(kOperationNanos);
    so_far_.reads += kReadsPerOperation;
  }
  const rdma::VerbCounters& VerbsSoFar() const override { return so_far_; }
  void MeasurementBegins() override { ++begun_; }
  void MeasurementEnds() override {
    EXPECT_EQ(begun_, 1);
    ++ended_;
  }

  const Script script_;
  rdma::VerbCounters so_far_;
  bool prepared_ = false;
  bool ran_ = false;
  int closed_ = 0;
  uint64_t measured_ = 0;
  int begun_ = 0;
  int ended_ = 0;
};

class RunWorkersTest : public ::testing::Test {
 protected:
  RunWorkersTest() {
    options_.warmup = absl::Milliseconds(20);
    options_.duration = absl::Milliseconds(50);
    options_.interval = absl::Milliseconds(10);
    options_.stop = &stop_;
    hooks_.thread_name = "fake";
    hooks_.interval = [this](const CountedInterval& interval) { intervals_.push_back(interval); };
  }

  FakeWorker& Add(Script script = {}) {
    script.stop = &stop_;
    workers_.push_back(std::make_unique<FakeWorker>(&control_, std::move(script)));
    return *workers_.back();
  }

  StatusOr<RunResult> Run() {
    std::vector<Worker*> workers;
    for (const auto& worker : workers_) workers.push_back(worker.get());
    const uint64_t start = NowNanos();
    StatusOr<RunResult> result = RunWorkers(workers, &control_, options_, hooks_);
    milliseconds_ = static_cast<double>(NowNanos() - start) * 1e-6;
    for (const auto& worker : workers_) EXPECT_EQ(worker->closed(), 1);
    return result;
  }

  rdma::sim::Simulation simulation_{{}};  // this thread is its observer
  std::atomic<bool> stop_{false};
  RunControl control_;
  RunOptions options_;
  Hooks hooks_;
  std::vector<std::unique_ptr<FakeWorker>> workers_;
  std::vector<CountedInterval> intervals_;
  double milliseconds_ = 0;  // of the run
};

TEST_F(RunWorkersTest, OnlyTheMeasuredPhaseCounts) {
  const FakeWorker& one = Add();
  const FakeWorker& other = Add({.drain_operations = 30});
  const StatusOr<RunResult> result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_NEAR(result->seconds, 0.05, 1e-6);
  uint64_t reads = 0;
  for (const FakeWorker* worker : {&one, &other}) {
    EXPECT_NEAR(static_cast<double>(worker->measured()), 50, 1);
    // An operation at each end may be in one of the two and not in the other.
    EXPECT_NEAR(static_cast<double>(worker->verbs().reads), static_cast<double>(2 * worker->measured()), 2);
    EXPECT_NEAR(static_cast<double>(worker->live(0)), 70, 1);
    Histogram measured;
    Histogram all;
    for (size_t kind = 0; kind < kKinds; ++kind) {
      worker->AddMeasuredLatencies(kind, &measured);
      worker->AddLatencies(kind, &all);
    }
    EXPECT_EQ(measured.count(), worker->measured());
    EXPECT_NEAR(static_cast<double>(all.count()), 70, 1);
    EXPECT_EQ(worker->begun(), 1);
    EXPECT_EQ(worker->ended(), 1);
    reads += worker->verbs().reads;
  }
  EXPECT_EQ(result->verbs.reads, reads);
  EXPECT_NEAR(milliseconds_, 1 + 20 + 50 + 1 + 30, 1.5) << "prepare, warm-up, measure, the last operation, drain";
}

TEST_F(RunWorkersTest, EveryIntervalIsToldAndThoseOfTheMeasuredPhaseAreKept) {
  Add();
  Add();
  const StatusOr<RunResult> result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(intervals_.size(), 7u);
  for (size_t i = 0; i < intervals_.size(); ++i) {
    const CountedInterval& interval = intervals_[i];
    EXPECT_EQ(interval.warming_up, i < 2);
    EXPECT_NEAR(interval.at_seconds, 0.01 * static_cast<double>(i + 1), 1e-6);
    EXPECT_NEAR(interval.seconds, 0.01, 1e-6);
    EXPECT_NEAR(interval.Rate(interval.counts[0]), 2000, 200) << "two workers, an operation each millisecond";
    EXPECT_EQ(interval.counts[kOther], 10 * interval.counts[0]);
    ASSERT_EQ(interval.kinds.size(), kKinds);
    EXPECT_EQ(interval.all.operations, interval.counts[0]);
    EXPECT_EQ(interval.kinds[0].operations + interval.kinds[1].operations, interval.counts[0]);
    for (size_t kind = 0; kind < 2; ++kind) {
      EXPECT_NEAR(static_cast<double>(interval.kinds[kind].operations), 10, 2);
      const double us = kind == 0 ? 1000 : 2000;
      for (const double value : {interval.kinds[kind].p50_us, interval.kinds[kind].p95_us, interval.kinds[kind].p99_us,
                                 interval.kinds[kind].max_us}) {
        EXPECT_NEAR(value, us, us * 0.01);
      }
    }
    EXPECT_EQ(interval.kinds[0].aborts, 3 * interval.kinds[0].operations);
    EXPECT_EQ(interval.all.aborts, interval.kinds[0].aborts);
    EXPECT_NEAR(interval.all.p99_us, 2000, 20);
    EXPECT_EQ(interval.kinds[2].operations, 0u);
    EXPECT_EQ(interval.kinds[2].p99_us, 0);
  }
  ASSERT_EQ(result->timeline.size(), 5u);
  EXPECT_NEAR(result->timeline.front().at_seconds, 0.03, 1e-6);
  EXPECT_NEAR(result->timeline.back().at_seconds, 0.07, 1e-6);
}

TEST_F(RunWorkersTest, ALastIntervalIsAsShortAsThePhase) {
  options_.duration = absl::Milliseconds(25);
  Add();
  const StatusOr<RunResult> result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  std::vector<double> lengths;
  for (const CountedInterval& interval : result->timeline) lengths.push_back(std::round(interval.seconds * 1e3));
  EXPECT_THAT(lengths, ElementsAre(10, 10, 5));
}

TEST_F(RunWorkersTest, RunsOnUntilSoManyOperationsAreDone) {
  options_.at_least = 200;
  Add();
  Add();
  const StatusOr<RunResult> result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_NEAR(result->seconds, 0.1, 0.0101);
}

TEST_F(RunWorkersTest, TellsWhenTheMeasuredPhaseBeginsAndEnds) {
  std::vector<double> told;
  const uint64_t start = NowNanos();
  options_.watch = [&](bool end) {
    EXPECT_EQ(control_.phase(), end ? Phase::kDrain : Phase::kWarmup);
    told.push_back(std::round(static_cast<double>(NowNanos() - start) * 1e-6));
  };
  Add();
  ASSERT_TRUE(Run().ok());
  EXPECT_THAT(told, ElementsAre(21, 71));
}

TEST_F(RunWorkersTest, TheHookComesBetweenTheLastThatPreparesAndTheFirstThatRuns) {
  const FakeWorker& one = Add();
  const FakeWorker& other = Add();
  int called = 0;
  hooks_.prepared = [&] {
    ++called;
    EXPECT_TRUE(one.prepared() && other.prepared());
    SleepForNanos(10 * kOperationNanos);
    EXPECT_FALSE(one.ran() || other.ran());
  };
  const StatusOr<RunResult> result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(called, 1);
  EXPECT_TRUE(one.ran() && other.ran());
  EXPECT_NEAR(intervals_.front().at_seconds, 0.01, 1e-6) << "the warm-up begins after it";
}

TEST_F(RunWorkersTest, AWorkerThatCannotPrepareEndsTheRun) {
  hooks_.prepared = [] { ADD_FAILURE() << "not all have prepared"; };
  const FakeWorker& good = Add();
  const FakeWorker& bad = Add({.prepare = absl::UnavailableError("cannot prepare")});
  const Status status = Run().status();
  EXPECT_EQ(status, absl::UnavailableError("cannot prepare"));
  EXPECT_FALSE(bad.ran());
  EXPECT_EQ(good.live(0), 0u);
  EXPECT_LE(milliseconds_, 2);
}

TEST_F(RunWorkersTest, AWorkerThatFailsInTheWarmUpEndsTheRun) {
  Add({.fail_at = 5});
  const FakeWorker& good = Add();
  const Status status = Run().status();
  EXPECT_EQ(status, absl::DataLossError("failed on purpose"));
  EXPECT_LE(milliseconds_, 1 + 5 + 10) << "the driver looks every 10 ms";
  EXPECT_THAT(good.live(0), AllOf(Ge(5u), Le(6u)));
  EXPECT_EQ(good.measured(), 0u);
  EXPECT_TRUE(absl::IsDataLoss(control_.error()));
}

TEST_F(RunWorkersTest, AWorkerThatFailsInTheMeasuredPhaseEndsTheRun) {
  const FakeWorker& bad = Add({.fail_at = 35});
  const FakeWorker& good = Add();
  const Status status = Run().status();
  EXPECT_EQ(status, absl::DataLossError("failed on purpose"));
  EXPECT_GT(bad.measured(), 0u);
  EXPECT_THAT(good.live(0), AllOf(Ge(35u), Le(36u)));
  EXPECT_LE(milliseconds_, 1 + 35 + 10);
}

TEST_F(RunWorkersTest, AWorkerThatFailsWhenItDrainsEndsTheRunToo) {
  Add({.fail_in_drain = true});
  const FakeWorker& good = Add({.drain_operations = 5});
  EXPECT_EQ(Run().status(), absl::DataLossError("failed on purpose"));
  EXPECT_NEAR(static_cast<double>(good.measured()), 50, 1);
}

TEST_F(RunWorkersTest, TheFirstErrorIsTold) {
  Add({.fail_in_drain = true});
  Add({.prepare = absl::UnavailableError("cannot prepare")});
  EXPECT_TRUE(absl::IsUnavailable(Run().status()));
}

TEST_F(RunWorkersTest, StoppedInTheWarmUpItMeasuresNothing) {
  const FakeWorker& worker = Add({.stop_at = 5});
  const StatusOr<RunResult> result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->seconds, 0);
  EXPECT_THAT(result->timeline, IsEmpty());
  EXPECT_EQ(result->verbs.reads, 0u);
  EXPECT_EQ(worker.measured(), 0u);
  EXPECT_EQ(worker.ended(), 1) << "the worker has both ends, also without a measured phase";
  EXPECT_LE(milliseconds_, 1 + 5 + 11);
}

TEST_F(RunWorkersTest, StoppedInTheMeasuredPhaseItReportsWhatItHas) {
  const FakeWorker& worker = Add({.stop_at = 35});
  const StatusOr<RunResult> result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->seconds, AllOf(Ge(0.0149), Le(0.0251))) << "the driver looks every 10 ms";
  EXPECT_NEAR(static_cast<double>(worker.measured()), result->seconds * 1e3, 1.1);
  EXPECT_NEAR(static_cast<double>(result->verbs.reads), result->seconds * 2e3, 2.1);
  EXPECT_FALSE(result->timeline.empty());
}

TEST_F(RunWorkersTest, StoppedWhenItDrainsItReportsEverything) {
  const FakeWorker& stops = Add({.stop_in_drain = true});
  const FakeWorker& other = Add({.drain_operations = 5});
  const StatusOr<RunResult> result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_NEAR(result->seconds, 0.05, 1e-6);
  for (const FakeWorker* worker : {&stops, &other}) EXPECT_NEAR(static_cast<double>(worker->measured()), 50, 1);
  EXPECT_NEAR(milliseconds_, 1 + 20 + 50 + 1 + 5, 1.5) << "the drain is not cut short";
}

TEST_F(RunWorkersTest, StoppedBeforeItBeginsItStillPreparesAndCloses) {
  stop_ = true;
  hooks_.prepared = [] { ADD_FAILURE() << "the run was stopped"; };
  const FakeWorker& worker = Add();
  const StatusOr<RunResult> result = Run();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->seconds, 0);
  EXPECT_TRUE(worker.prepared());
  EXPECT_THAT(intervals_, IsEmpty());
}

TEST(CheckDurationsTest, WantsAWindowAndIntervals) {
  RunOptions options;
  EXPECT_TRUE(CheckDurations(options).ok());
  options.warmup = absl::ZeroDuration();
  EXPECT_TRUE(CheckDurations(options).ok());
  options.warmup = absl::Seconds(-1);
  EXPECT_TRUE(absl::IsInvalidArgument(CheckDurations(options)));
  options = {};
  options.duration = absl::ZeroDuration();
  EXPECT_TRUE(absl::IsInvalidArgument(CheckDurations(options)));
  options = {};
  options.interval = absl::ZeroDuration();
  EXPECT_TRUE(absl::IsInvalidArgument(CheckDurations(options)));
}

}  // namespace run_test
}  // namespace gannet::bench
