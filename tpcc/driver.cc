#include "tpcc/driver.h"

#include <algorithm>
#include <chrono>
#include <latch>
#include <memory>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/clock.h"
#include "base/run_control.h"
#include "base/thread.h"
#include "tpcc/bench_worker.h"

namespace gannet::tpcc {
namespace {

constexpr int kNanosPerMicro = 1000;

Status CheckThreads(std::span<txn::Database* const> nodes, std::span<const Tables> tables, const RunOptions& options) {
  const bool owners = nodes[0]->owns_rows();
  for (const txn::Database* node : nodes) {
    if (node->owns_rows() != owners) {
      return absl::InvalidArgumentError("workers run either on nodes with warehouses or on nodes without, not on both");
    }
  }
  const size_t most = (kLastWorker - options.first_worker + 1) * (owners ? nodes.size() : size_t{tables[0].warehouses});
  if (static_cast<size_t>(options.threads) > most) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d threads: at most %d on %d nodes", options.threads, most, nodes.size()));
  }
  return absl::OkStatus();
}

int CoroutinesOf(std::span<txn::Database* const> nodes, std::span<const Tables> tables, const RunOptions& options) {
  constexpr int kMostByDefault = 4;
  if (options.coroutines != 0) return options.coroutines;
  if (nodes[0]->fabric().num_nodes() == 1) return 1;
  return std::clamp(static_cast<int>(tables[0].warehouses) / options.threads, 1, kMostByDefault);
}

Status CheckOptions(std::span<txn::Database* const> nodes, std::span<const Tables> tables, const RunOptions& options) {
  if (nodes.empty() || nodes.size() != tables.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d nodes with %d sets of tables: give one of each per node", nodes.size(), tables.size()));
  }
  if (options.threads < static_cast<int>(nodes.size())) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d threads on %d nodes: every node needs at least one", options.threads, nodes.size()));
  }
  if (options.first_worker < kFirstWorker || options.first_worker > kLastWorker) {
    return absl::InvalidArgumentError(absl::StrFormat("first_worker is %d: choose between %d and %d",
                                                      options.first_worker, kFirstWorker, kLastWorker));
  }
  GANNET_RETURN_IF_ERROR(CheckThreads(nodes, tables, options));
  if (options.coroutines < 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d coroutines: choose at least 1, or 0 for the default", options.coroutines));
  }
  if (options.in_flight != 0 && options.in_flight < CoroutinesOf(nodes, tables, options)) {
    return absl::InvalidArgumentError(absl::StrFormat("%d in flight with %d coroutines: choose at least as many, or 0",
                                                      options.in_flight, CoroutinesOf(nodes, tables, options)));
  }
  if (std::any_of(options.mix.begin(), options.mix.end(), [](int percent) { return percent < 0; }) ||
      std::accumulate(options.mix.begin(), options.mix.end(), 0) != Deck::kCards) {
    return absl::InvalidArgumentError(absl::StrFormat("the mix %d,%d,%d,%d,%d must be percentages that sum to 100",
                                                      options.mix[0], options.mix[1], options.mix[2], options.mix[3],
                                                      options.mix[4]));
  }
  if (options.duration <= absl::ZeroDuration() || options.warmup < absl::ZeroDuration() ||
      options.interval <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("duration and interval must be positive, warm-up not negative");
  }
  return absl::OkStatus();
}

// The home warehouses of a worker, and its number among their workers.
struct Post {
  std::vector<uint32_t> homes;
  uint32_t number;  // from 0; unique among the workers of a warehouse
};

// For worker `k` of `workers` on a node that owns warehouses: they are dealt to the workers in turn, or shared if there
// are too few.
Post PostAtOwner(const txn::Database& database, uint32_t warehouses, uint32_t k, uint32_t workers) {
  const auto data_nodes = static_cast<uint32_t>(database.data_nodes());
  const uint32_t owned = WarehousesOfNode(warehouses, database.node_id(), database.data_nodes());
  Post post{{}, k};
  for (uint32_t i = k % owned; i < owned; i += workers) post.homes.push_back(i * data_nodes + database.node_id() + 1);
  return post;
}

// For worker `i` of `workers` on nodes without warehouses: the same with all warehouses.
Post PostAtClient(uint32_t warehouses, uint32_t i, uint32_t workers) {
  Post post{{}, i / warehouses};
  for (uint32_t w = i % warehouses; w < warehouses; w += workers) post.homes.push_back(w + 1);
  return post;
}

class Runner {
 public:
  Runner(std::span<txn::Database* const> nodes, std::span<const Tables> tables, const RunOptions& options,
         const RunProgress& progress)
      : options_(options), progress_(progress) {
    coroutines_ = CoroutinesOf(nodes, tables, options);
    const NonUniform non_uniform = NonUniform::ForRun(options.seed, NonUniform::ForLoad(options.load_seed));
    const uint32_t local_nodes = static_cast<uint32_t>(nodes.size());
    const uint32_t threads = static_cast<uint32_t>(options.threads);
    for (uint32_t i = 0; i < threads; ++i) {
      const uint32_t n = i % local_nodes;
      const uint32_t k = i / local_nodes;
      const uint32_t workers = threads / local_nodes + (n < threads % local_nodes ? 1 : 0);
      const rdma::NodeId node = nodes[n]->node_id();
      Post post = nodes[n]->owns_rows() ? PostAtOwner(*nodes[n], tables[n].warehouses, k, workers)
                                        : PostAtClient(tables[n].warehouses, i, threads);
      workers_.push_back(std::make_unique<BenchWorker>(
          BenchWorker::Options{.database = nodes[n],
                               .tables = &tables[n],
                               .run = &options,
                               .coroutines = coroutines_,
                               .number = options.first_worker + post.number,
                               .homes = std::move(post.homes),
                               .seed = Mix64(options.seed) ^ Mix64(uint64_t{node} << 32 | (k + 1)),
                               .non_uniform = non_uniform},
          &control_));
    }
  }

  StatusOr<RunReport> Run() {
    Latch prepared(workers_.size() + 1);
    std::vector<Thread> threads;
    for (const auto& worker : workers_) {
      threads.emplace_back("worker", [&worker, &prepared] {
        worker->Prepare();
        prepared.arrive_and_wait();
        worker->Run();
      });
    }
    prepared.arrive_and_wait();
    begin_ns_ = NowNanos();
    Watch(options_.warmup);
    const uint64_t measure_ns = NowNanos();
    control_.Advance(Phase::kMeasure);
    Watch(options_.duration);
    control_.Advance(Phase::kStop);
    const uint64_t stop_ns = NowNanos();
    for (Thread& thread : threads) thread.join();
    GANNET_RETURN_IF_ERROR(control_.error());
    return MakeReport(static_cast<double>(stop_ns - measure_ns) * 1e-9);
  }

 private:
  // True if a worker failed or the run was stopped.
  bool Ended() const {
    return control_.phase() == Phase::kStop ||
           (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed));
  }

  // Waits for `duration`, or until the run has ended, and reports after each interval.
  void Watch(absl::Duration duration) {
    const uint64_t end = NowNanos() + static_cast<uint64_t>(absl::ToInt64Nanoseconds(duration));
    const uint64_t interval = static_cast<uint64_t>(absl::ToInt64Nanoseconds(options_.interval));
    last_ns_ = NowNanos();
    while (last_ns_ < end && !Ended()) {
      WaitWhileRunning(std::min(end, last_ns_ + interval), [this] { return Ended(); });
      ReportInterval();
    }
  }

  void ReportInterval() {
    const uint64_t now = NowNanos();
    IntervalReport total;
    for (const auto& worker : workers_) {
      total.transactions += worker->live().transactions.load(std::memory_order_relaxed);
      total.new_orders += worker->live().new_orders.load(std::memory_order_relaxed);
      total.aborts += worker->live().aborts.load(std::memory_order_relaxed);
    }
    const IntervalReport interval{.warming_up = control_.phase() == Phase::kWarmup,
                                  .at_seconds = static_cast<double>(now - begin_ns_) * 1e-9,
                                  .seconds = static_cast<double>(now - last_ns_) * 1e-9,
                                  .transactions = total.transactions - last_.transactions,
                                  .new_orders = total.new_orders - last_.new_orders,
                                  .aborts = total.aborts - last_.aborts};
    last_ = total;
    last_ns_ = now;
    if (progress_) progress_(interval);
  }

  RunReport MakeReport(double seconds) const {
    RunReport report;
    report.seconds = seconds;
    report.threads = options_.threads;
    report.coroutines = coroutines_;
    report.in_flight = options_.think_time ? 0 : options_.in_flight;
    uint64_t transactions = 0;
    for (size_t p = 0; p < kProcedures; ++p) {
      ProcedureReport& procedure = report.procedures[p];
      Histogram latency;
      for (const auto& worker : workers_) AddProcedure(worker->statistics().procedures[p], procedure, latency);
      SetLatencies(latency, procedure);
      transactions += procedure.committed + procedure.rolled_back;
    }
    for (const auto& worker : workers_) {
      report.verbs += worker->statistics().verbs;
      AddCaches(worker->statistics(), report);
    }
    report.transactions_per_second = static_cast<double>(transactions) / seconds;
    report.new_orders_per_minute = static_cast<double>(report.of(Procedure::kNewOrder).committed) * 60 / seconds;
    return report;
  }

  static void AddProcedure(const ProcedureStatistics& from, ProcedureReport& to, Histogram& latency) {
    to.committed += from.committed;
    to.aborted += from.aborted;
    to.rolled_back += from.rolled_back;
    to.verbs += from.verbs;
    to.verb_samples += from.verb_samples;
    latency.Merge(from.latency);
  }

  static void SetLatencies(const Histogram& latency, ProcedureReport& procedure) {
    auto micros = [](uint64_t nanos) { return static_cast<double>(nanos) / kNanosPerMicro; };
    procedure.mean_us = latency.mean() / kNanosPerMicro;
    procedure.p50_us = micros(latency.Percentile(50));
    procedure.p90_us = micros(latency.Percentile(90));
    procedure.p99_us = micros(latency.Percentile(99));
    procedure.max_us = micros(latency.max());
  }

  static void AddCaches(const WorkerStatistics& from, RunReport& report) {
    for (const auto& [table, statistics] : from.client_caches) {
      auto sum = std::find_if(report.client_caches.begin(), report.client_caches.end(),
                              [&name = table](const auto& entry) { return entry.first == name; });
      if (sum == report.client_caches.end()) {
        report.client_caches.emplace_back(table, statistics);
        continue;
      }
      sum->second.cache_bytes += statistics.cache_bytes;
      sum->second.lookups += statistics.lookups;
      sum->second.one_sided += statistics.one_sided;
      sum->second.fallbacks += statistics.fallbacks;
      sum->second.leaves_read += statistics.leaves_read;
    }
  }

  const RunOptions& options_;
  const RunProgress& progress_;
  int coroutines_ = 1;
  RunControl control_;
  std::vector<std::unique_ptr<BenchWorker>> workers_;
  uint64_t begin_ns_ = 0;
  uint64_t last_ns_ = 0;
  IntervalReport last_;
};

}  // namespace

StatusOr<RunReport> RunBenchmark(std::span<txn::Database* const> nodes, std::span<const Tables> tables,
                                 const RunOptions& options, const RunProgress& progress) {
  GANNET_RETURN_IF_ERROR(CheckOptions(nodes, tables, options));
  return Runner(nodes, tables, options, progress).Run();
}

}  // namespace gannet::tpcc
