#include "ycsb/driver.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/run_control.h"
#include "base/runtime.h"
#include "base/thread.h"
#include "ycsb/bench_worker.h"

namespace gannet::ycsb {
namespace {

constexpr double kNanosPerMicro = 1000;

Status CheckOptions(const Cluster& cluster, const RunOptions& o) {
  if (o.threads_per_machine < 1 || o.coroutines < 1) {
    return absl::InvalidArgumentError(absl::StrFormat("%d threads with %d coroutines per machine: at least one each",
                                                      o.threads_per_machine, o.coroutines));
  }
  if (std::any_of(o.mix.begin(), o.mix.end(), [](int percent) { return percent < 0; }) ||
      std::accumulate(o.mix.begin(), o.mix.end(), 0) != 100) {
    return absl::InvalidArgumentError("the shares of the operations must be percentages that sum to 100");
  }
  const index::IndexKindEntry& kind = index::EntryOf(cluster.options().index);
  if (o.mix[static_cast<size_t>(Kind::kScan)] > 0 && !kind.traits.ordered) {
    return absl::InvalidArgumentError(absl::StrFormat("scans need an ordered index; %s is not", kind.name));
  }
  if (o.insert_rate > 0 && cluster.options().machines < 2) {
    return absl::InvalidArgumentError("insert_rate needs at least two machines: the last one only inserts");
  }
  if (o.insert_for <= absl::ZeroDuration()) return absl::InvalidArgumentError("insert_for must be positive");
  if (o.caches.share_xcache && Runtime::Current() == nullptr) {
    return absl::InvalidArgumentError("threads can share a cache of XStore in a simulation only");
  }
  if (o.duration <= absl::ZeroDuration() || o.warmup < absl::ZeroDuration() || o.interval <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("duration and interval must be positive, warm-up not negative");
  }
  return absl::OkStatus();
}

uint64_t Nanos(absl::Duration duration) {
  return static_cast<uint64_t>(absl::ToInt64Nanoseconds(duration));
}

void SetLatencies(const Histogram& latency, KindReport* report) {
  const auto micros = [](uint64_t nanos) { return static_cast<double>(nanos) / kNanosPerMicro; };
  report->mean_us = latency.mean() / kNanosPerMicro;
  report->p50_us = micros(latency.Percentile(50));
  report->p90_us = micros(latency.Percentile(90));
  report->p99_us = micros(latency.Percentile(99));
  report->max_us = micros(latency.max());
}

class Runner {
 public:
  Runner(Cluster* cluster, const RunOptions& options, const RunProgress& progress)
      : cluster_(cluster), options_(options), progress_(progress) {
    const int threads = cluster->options().machines * options.threads_per_machine;
    for (int i = 0; i < cluster->options().machines; ++i) {
      cluster->machine(i).xcaches.clear();
      cluster->machine(i).locations.reset();
    }
    for (int i = 0; i < cluster->options().servers; ++i) {
      cluster->server(i).set_locked_by_clients(options.paths.updates == Path::kOneSided);
    }
    for (int i = 0; i < threads; ++i) {
      workers_.push_back(std::make_unique<BenchWorker>(cluster, &options_, i, threads, &control_));
    }
  }

  StatusOr<RunReport> Run() {
    Latch prepared(workers_.size() + 1);
    Latch begin(workers_.size() + 1);
    std::vector<Thread> threads;
    for (const auto& worker : workers_) {
      threads.emplace_back("ycsb", [&worker, &prepared, &begin] {
        worker->Prepare();
        prepared.arrive_and_wait();
        begin.arrive_and_wait();
        worker->Run();
        worker->Close();
      });
    }
    prepared.arrive_and_wait();
    if (options_.caches.share_xcache && options_.fill_caches) CopyCaches();
    begin.arrive_and_wait();
    begin_nanos_ = NowNanos();
    Watch(options_.warmup, 0);
    if (options_.watch) options_.watch(false);
    const uint64_t measure_nanos = NowNanos();
    control_.Advance(Phase::kMeasure);
    Watch(options_.duration, options_.at_least);
    control_.Advance(Phase::kStop);
    const uint64_t stop_nanos = NowNanos();
    if (options_.watch) options_.watch(true);
    for (Thread& thread : threads) thread.join();
    for (const auto& worker : workers_) {
      cluster_->set_inserts_end(std::max(cluster_->inserts_end(), worker->inserts_end()));
    }
    GANNET_RETURN_IF_ERROR(control_.error());
    return MakeReport(static_cast<double>(stop_nanos - measure_nanos) * 1e-9);
  }

 private:
  // The threads of the first machine have filled its caches: the other machines get copies.
  void CopyCaches() {
    if (Ended()) return;
    const Machine& filled = cluster_->machine(0);
    for (int i = 1; i < cluster_->options().machines; ++i) {
      Machine& machine = cluster_->machine(i);
      for (size_t server = 0; server < machine.xcaches.size(); ++server) {
        index::CopyCache(*filled.xcaches[server], machine.xcaches[server].get());
      }
      if (machine.locations != nullptr) *machine.locations = *filled.locations;
    }
  }

  // True if a worker failed or the run was stopped.
  bool Ended() const {
    return control_.phase() == Phase::kStop ||
           (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed));
  }

  // Waits for `duration` and `at_least` operations, or until the run has ended, and reports after each interval.
  void Watch(absl::Duration duration, uint64_t at_least) {
    last_nanos_ = NowNanos();
    const uint64_t end = last_nanos_ + Nanos(duration);
    const uint64_t enough = last_operations_ + at_least;
    while ((last_nanos_ < end || last_operations_ < enough) && !Ended()) {
      const uint64_t next = last_nanos_ + Nanos(options_.interval);
      WaitWhileRunning(last_nanos_ < end ? std::min(end, next) : next, [this] { return Ended(); });
      ReportInterval();
    }
  }

  void ReportInterval() {
    const uint64_t now = NowNanos();
    uint64_t operations = 0;
    for (const auto& worker : workers_) operations += worker->operations();
    const IntervalReport interval{.warming_up = control_.phase() == Phase::kWarmup,
                                  .at_seconds = static_cast<double>(now - begin_nanos_) * 1e-9,
                                  .seconds = static_cast<double>(now - last_nanos_) * 1e-9,
                                  .operations = operations - last_operations_};
    last_operations_ = operations;
    last_nanos_ = now;
    if (!interval.warming_up && control_.phase() == Phase::kMeasure) timeline_.push_back(interval);
    if (progress_) progress_(interval);
  }

  RunReport MakeReport(double seconds) const {
    RunReport report;
    report.seconds = seconds;
    report.threads = static_cast<int>(workers_.size());
    report.coroutines = options_.coroutines;
    report.timeline = timeline_;
    auto all = std::make_unique<Histogram>();
    for (size_t k = 0; k < kKinds; ++k) {
      KindReport& kind = report.kinds[k];
      auto latency = std::make_unique<Histogram>();
      for (const auto& worker : workers_) {
        const KindStatistics& part = worker->statistics().kinds[k];
        kind.operations += part.operations;
        kind.finished += part.finished;
        kind.records += part.records;
        kind.verbs += part.verbs;
        kind.verb_samples += part.verb_samples;
        latency->Merge(part.latency);
      }
      SetLatencies(*latency, &kind);
      all->Merge(*latency);
      report.all.operations += kind.operations;
      report.all.finished += kind.finished;
      report.all.records += kind.records;
    }
    SetLatencies(*all, &report.all);
    for (const auto& worker : workers_) {
      report.all.verbs += worker->statistics().verbs;
      report.lookups += worker->statistics().lookups;
    }
    for (int i = 0; i < cluster_->options().machines; ++i) {
      const auto& locations = cluster_->machine(i).locations;
      if (locations != nullptr) report.lookups.cache_bytes += locations->bytes();
      for (const auto& cache : cluster_->machine(i).xcaches) report.lookups.cache_bytes += index::BytesOf(*cache);
    }
    report.all.verb_samples = report.all.operations;
    report.operations = report.all.operations;
    report.operations_per_second = seconds > 0 ? static_cast<double>(report.operations) / seconds : 0;
    return report;
  }

  Cluster* cluster_;
  const RunOptions& options_;
  const RunProgress& progress_;
  RunControl control_;
  std::vector<std::unique_ptr<BenchWorker>> workers_;
  uint64_t begin_nanos_ = 0;
  uint64_t last_nanos_ = 0;
  uint64_t last_operations_ = 0;
  std::vector<IntervalReport> timeline_;
};

}  // namespace

StatusOr<RunReport> RunBenchmark(Cluster* cluster, const RunOptions& options, const RunProgress& progress) {
  GANNET_RETURN_IF_ERROR(CheckOptions(*cluster, options));
  return Runner(cluster, options, progress).Run();
}

}  // namespace gannet::ycsb
