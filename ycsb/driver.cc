#include "ycsb/driver.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/runtime.h"
#include "bench/harness/operation_statistics.h"
#include "bench/harness/run.h"
#include "bench/harness/run_control.h"
#include "index/dex/dex.h"
#include "ycsb/bench_worker.h"
#include "ycsb/move_worker.h"
#include "ycsb/moving_part.h"

namespace gannet::ycsb {
namespace {

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
  if (o.insert_rate > 0 && cluster.has_servers() && cluster.options().machines < 2) {
    return absl::InvalidArgumentError("insert_rate needs at least two machines: the last one only inserts");
  }
  const bool values = cluster.options().values_in_entries;
  const bool by_clients = cluster.options().index_traits().client_writes;
  if (o.paths.inserts != Path::kCall && !(values && by_clients)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("one-sided inserts need values in the entries of an index that clients change; %s", kind.name));
  }
  if (!values && o.paths.updates == Path::kAdaptive) {
    return absl::InvalidArgumentError(
        "adaptive updates need values in the entries: records are locked in one way by all");
  }
  if (values && o.paths.updates != Path::kCall && !by_clients) {
    return absl::InvalidArgumentError(
        absl::StrFormat("values in the entries of %s are updated by calls: clients do not change it", kind.name));
  }
  if (values && o.caches.xstore_location_bytes > 0) {
    return absl::InvalidArgumentError("a cache of record addresses needs records; leave it out, or the inline values");
  }
  if (cluster.options().keeping != index::shared_leaf::Keeping::kNone) {
    const auto has = [&o](Kind operation) { return o.mix[static_cast<size_t>(operation)] > 0; };
    const bool by_call = o.paths.reads == Path::kCall || (o.paths.updates == Path::kCall && has(Kind::kUpdate)) ||
                         (o.paths.inserts == Path::kCall && has(Kind::kInsert));
    if (by_call || !o.caches.share) {
      return absl::InvalidArgumentError(
          "kept leaves need one-sided or adaptive reads, updates and inserts, and caches that a machine's threads "
          "share: the owner's memory does not have what a machine has changed in its copies");
    }
  }
  if (o.moves()) {
    const auto& mix = o.mix;
    const int others = mix[static_cast<size_t>(Kind::kInsert)] + mix[static_cast<size_t>(Kind::kScan)];
    if (!cluster.options().partitioned || cluster.options().machines < 2 || o.coroutines > 1 || others > 0 ||
        o.move_after < absl::ZeroDuration()) {
      return absl::InvalidArgumentError(
          "keys move between two machines or more with parts of their own, whose clients read and update, one "
          "operation at a time");
    }
    const ClusterOptions& c = cluster.options();
    if (const uint64_t least = MovingPart::LeastKeys(c.servers, c.machines); c.keys < least) {
      return absl::InvalidArgumentError(absl::StrFormat("%d keys, which move in slices: at least %d", c.keys, least));
    }
  }
  if (cluster.options().durability != DurabilityMode::kNone && o.paths.updates != Path::kCall) {
    return absl::InvalidArgumentError("writes that are logged are calls: the log is the server's");
  }
  if (o.insert_for <= absl::ZeroDuration()) return absl::InvalidArgumentError("insert_for must be positive");
  if (o.caches.share_locations && Runtime::Current() == nullptr) {
    return absl::InvalidArgumentError("threads can share a location cache in a simulation only");
  }
  return bench::CheckDurations(o);
}

class Runner {
 public:
  Runner(Cluster* cluster, const RunOptions& options, const RunProgress& progress)
      : cluster_(cluster), options_(options), progress_(progress) {
    const int threads = cluster->options().machines * options.threads_per_machine;
    if (options.moves()) moving_ = std::make_unique<MovingPart>(cluster, options.threads_per_machine);
    for (int i = 0; i < cluster->options().machines; ++i) {
      cluster->machine(i).xcaches.clear();
      cluster->machine(i).locations.reset();
      cluster->machine(i).caches.clear();
      cluster->machine(i).queues = options.caches.share ? std::make_shared<LeafQueues>() : nullptr;
      cluster->machine(i).read_queues =
          options.caches.share ? std::make_shared<LeafQueues>(ReadDelegation::kMostReads) : nullptr;
      for (int server = 0; options.caches.share && server < cluster->options().servers; ++server) {
        AddCaches(&cluster->machine(i));
      }
      MovingPart::SetRanges(cluster, i, moving_.get(), 0);
      cluster->machine(i).running = options.threads_per_machine;
    }
    for (int i = 0; cluster->has_servers() && i < cluster->options().servers; ++i) {
      cluster->server(i).set_locked_by_clients(options.paths.updates == Path::kOneSided);
    }
    for (int i = 0; i < threads; ++i) {
      workers_.push_back(std::make_unique<BenchWorker>(cluster, &options_, i, threads, moving_.get(), &control_));
    }
    if (moving_ != nullptr) {
      mover_ = std::make_unique<MoveWorker>(cluster, &options_, moving_.get(), &control_);
      ++cluster->machine(moving_->giver()).running;
    }
  }

  StatusOr<RunReport> Run() {
    std::vector<bench::Worker*> workers;
    for (const auto& worker : workers_) workers.push_back(worker.get());
    if (mover_ != nullptr) workers.push_back(mover_.get());
    bench::Hooks hooks{.thread_name = "ycsb",
                       .prepared = [this] { CopyCaches(); },
                       .interval = nullptr,
                       .is_done = [this] { return moving_ == nullptr || moving_->taken() == MovingPart::kMoved; }};
    if (progress_) {
      hooks.interval = [this](const bench::CountedInterval& interval) { progress_(ReportOf(interval)); };
    }
    const StatusOr<bench::RunResult> result = bench::RunWorkers(workers, &control_, options_, hooks);
    for (const auto& worker : workers_) {
      cluster_->set_inserts_end(std::max(cluster_->inserts_end(), worker->inserts_end()));
    }
    if (!result.ok()) return result.status();
    return MakeReport(*result);
  }

 private:
  // A machine has one, for all servers.
  std::shared_ptr<index::CachePool> NewPool(const index::IndexKindEntry& kind) const {
    const size_t bytes = options_.caches.index_bytes * static_cast<size_t>(cluster_->options().servers);
    if (cluster_->options().index != IndexKind::kDex) return kind.make_pool(bytes);
    index::dex::PageCacheOptions pages = options_.caches.pages;
    if (bytes != 0) pages.max_bytes = bytes;
    return std::make_shared<index::dex::PagePool>(pages);
  }
  void AddCaches(Machine* machine) const {
    const index::IndexKindEntry& kind = index::EntryOf(cluster_->options().index);
    if (kind.traits.learned) {
      machine->xcaches.push_back(index::MakeSharedCache(options_.caches.xcache));
    } else if (kind.make_pool != nullptr) {
      if (machine->caches.empty()) machine->pool = NewPool(kind);
      machine->caches.push_back(machine->pool->NewCache());
    } else if (kind.make_cache != nullptr) {
      machine->caches.push_back(kind.make_cache(options_.caches.index_bytes));
    }
  }
  // The threads of the first machine have filled its caches: the other machines get copies.
  void CopyCaches() {
    if (!options_.fill_caches) return;
    const Machine& filled = cluster_->machine(0);
    for (int i = 1; i < cluster_->options().machines; ++i) {
      Machine& machine = cluster_->machine(i);
      for (size_t server = 0; server < machine.xcaches.size(); ++server) {
        index::CopyCache(*filled.xcaches[server], machine.xcaches[server].get());
      }
      if (machine.locations != nullptr && options_.caches.share_locations) *machine.locations = *filled.locations;
    }
  }

  static IntervalReport ReportOf(const bench::CountedInterval& interval) {
    return {interval, interval.counts[kOperations]};
  }

  RunReport MakeReport(const bench::RunResult& result) const {
    RunReport report;
    report.seconds = result.seconds;
    report.threads = static_cast<int>(workers_.size());
    report.coroutines = options_.coroutines;
    for (const bench::CountedInterval& interval : result.timeline) report.timeline.push_back(ReportOf(interval));
    if (mover_ != nullptr) report.move = mover_->report();
    const auto all = std::make_unique<bench::Histogram>();
    for (size_t k = 0; k < kKinds; ++k) {
      KindReport& kind = report.kinds[k];
      bench::OperationStatistics verbs;
      const auto latency = std::make_unique<bench::Histogram>();
      for (const auto& worker : workers_) {
        const KindStatistics& part = worker->statistics().kinds[k];
        kind.operations += part.operations;
        kind.finished += part.finished;
        kind.records += part.records;
        verbs.Merge(part);
        worker->AddMeasuredLatencies(k, latency.get());
      }
      bench::Summarize(verbs, *latency, &kind);
      all->Merge(*latency);
      report.all.operations += kind.operations;
      report.all.finished += kind.finished;
      report.all.records += kind.records;
    }
    bench::SetLatencies(*all, &report.all);
    report.all.verbs = result.verbs;
    for (const auto& worker : workers_) report.lookups += worker->statistics().lookups;
    for (const auto& worker : workers_) txn::AddPaths(worker->statistics().paths, &report.paths);
    for (int i = 0; i < cluster_->options().machines; ++i) {
      const auto& locations = cluster_->machine(i).locations;
      if (locations != nullptr) report.lookups.cache_bytes += locations->bytes();
      for (const auto& cache : cluster_->machine(i).xcaches) report.lookups.cache_bytes += index::BytesOf(*cache);
      for (const auto& cache : cluster_->machine(i).caches) report.lookups.cache_bytes += cache->bytes();
    }
    report.all.verb_samples = report.all.operations;
    report.operations = report.all.operations;
    if (result.seconds > 0) report.operations_per_second = static_cast<double>(report.operations) / result.seconds;
    return report;
  }

  Cluster* cluster_;
  const RunOptions& options_;
  const RunProgress& progress_;
  bench::RunControl control_;
  std::unique_ptr<MovingPart> moving_;  // null: no keys move
  std::vector<std::unique_ptr<BenchWorker>> workers_;
  std::unique_ptr<MoveWorker> mover_;
};

}  // namespace

StatusOr<RunReport> RunBenchmark(Cluster* cluster, const RunOptions& options, const RunProgress& progress) {
  GANNET_RETURN_IF_ERROR(CheckOptions(*cluster, options));
  return Runner(cluster, options, progress).Run();
}

}  // namespace gannet::ycsb
