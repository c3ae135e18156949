#include "tpcc/driver.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/check.h"
#include "bench/harness/operation_statistics.h"
#include "bench/harness/run.h"
#include "bench/harness/run_control.h"
#include "tpcc/bench_worker.h"

namespace gannet::tpcc {
namespace {

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
  const int most = options.in_flight == 0 ? kMostByDefault : std::clamp(options.in_flight, 1, kMostByDefault);
  return std::clamp(static_cast<int>(tables[0].warehouses) / options.threads, 1, most);
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
  return bench::CheckDurations(options);
}

// The home warehouses of a worker, and its number among their workers.
struct Post {
  std::vector<uint32_t> homes;
  uint32_t number;  // from 0; unique among the workers of a warehouse
};

// The post of worker `k` of `workers` on a node that owns warehouses: they are dealt to the workers in turn, or shared
// if there are too few.
Post PostAtOwner(const txn::Database& database, uint32_t warehouses, uint32_t k, uint32_t workers) {
  const auto data_nodes = static_cast<uint32_t>(database.data_nodes());
  const uint32_t owned = WarehousesOfNode(warehouses, database.node_id(), database.data_nodes());
  GANNET_CHECK(owned > 0, "node %d of %d, %d warehouses", database.node_id(), database.data_nodes(), warehouses);
  Post post{{}, k};
  for (uint32_t i = k % owned; i < owned; i += workers) post.homes.push_back(i * data_nodes + database.node_id() + 1);
  return post;
}

// The post of worker `i` of `workers` on nodes without warehouses, which share all warehouses in this way.
Post PostAtClient(uint32_t warehouses, uint32_t i, uint32_t workers) {
  Post post{{}, i / warehouses};
  for (uint32_t w = i % warehouses; w < warehouses; w += workers) post.homes.push_back(w + 1);
  return post;
}

class Runner {
 public:
  Runner(std::span<txn::Database* const> nodes, std::span<const Tables> tables, const RunOptions& options,
         const RunProgress& progress)
      : options_(options), progress_(progress), databases_(nodes.begin(), nodes.end()) {
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
    std::vector<bench::Worker*> workers;
    for (const auto& worker : workers_) workers.push_back(worker.get());
    bench::Hooks hooks{.thread_name = "worker", .prepared = nullptr, .interval = nullptr};
    if (progress_) {
      hooks.interval = [this](const bench::CountedInterval& interval) { progress_(ReportOf(interval)); };
    }
    const StatusOr<bench::RunResult> result = bench::RunWorkers(workers, &control_, options_, hooks);
    if (!result.ok()) return result.status();
    return MakeReport(*result);
  }

 private:
  static IntervalReport ReportOf(const bench::CountedInterval& interval) {
    return {interval, interval.counts[kTransactions], interval.counts[kNewOrders], interval.counts[kAborts]};
  }

  RunReport MakeReport(const bench::RunResult& result) const {
    RunReport report;
    report.seconds = result.seconds;
    report.threads = options_.threads;
    report.coroutines = coroutines_;
    report.in_flight = options_.think_time ? 0 : options_.in_flight;
    report.verbs = result.verbs;
    for (const bench::CountedInterval& interval : result.timeline) report.timeline.push_back(ReportOf(interval));
    const auto all = std::make_unique<bench::Histogram>();
    for (size_t p = 0; p < kProcedures; ++p) {
      ProcedureReport& procedure = report.procedures[p];
      bench::OperationStatistics verbs;
      const auto latency = std::make_unique<bench::Histogram>();
      for (const auto& worker : workers_) {
        const ProcedureStatistics& part = worker->statistics().procedures[p];
        procedure.committed += part.committed;
        procedure.aborted += part.aborted;
        procedure.rolled_back += part.rolled_back;
        verbs.Merge(part);
        worker->AddMeasuredLatencies(p, latency.get());
      }
      bench::Summarize(verbs, *latency, &procedure);
      all->Merge(*latency);
      report.all.committed += procedure.committed;
      report.all.aborted += procedure.aborted;
      report.all.rolled_back += procedure.rolled_back;
    }
    bench::SetLatencies(*all, &report.all);
    const uint64_t transactions = report.all.committed + report.all.rolled_back;
    report.all.verbs = result.verbs;
    report.all.verb_samples = transactions;
    for (const auto& worker : workers_) {
      report.skipped_deliveries += worker->statistics().skipped_deliveries;
      report.skipped_districts += worker->statistics().skipped_districts;
      AddCaches(worker->statistics(), report);
    }
    for (const txn::Database* database : databases_) AddSharedCaches(*database, report);
    for (const auto& worker : workers_) txn::AddPaths(worker->statistics().paths, &report.paths);
    if (result.seconds > 0) {
      report.transactions_per_second = static_cast<double>(transactions) / result.seconds;
      report.new_orders_per_minute =
          static_cast<double>(report.of(Procedure::kNewOrder).committed) * 60 / result.seconds;
    }
    return report;
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

  // All sessions of a database share these.
  static void AddSharedCaches(const txn::Database& database, RunReport& report) {
    for (const auto& [table, bytes] : database.shared_cache_bytes()) {
      const auto sum = std::find_if(report.client_caches.begin(), report.client_caches.end(),
                                    [&name = table](const auto& entry) { return entry.first == name; });
      if (sum != report.client_caches.end()) {
        sum->second.cache_bytes += bytes;
      } else {
        report.client_caches.emplace_back(table, index::ClientStatistics{.cache_bytes = bytes});
      }
    }
  }

  const RunOptions& options_;
  const RunProgress& progress_;
  const std::vector<txn::Database*> databases_;
  int coroutines_ = 1;
  bench::RunControl control_;
  std::vector<std::unique_ptr<BenchWorker>> workers_;
};

}  // namespace

StatusOr<RunReport> RunBenchmark(std::span<txn::Database* const> nodes, std::span<const Tables> tables,
                                 const RunOptions& options, const RunProgress& progress) {
  GANNET_RETURN_IF_ERROR(CheckOptions(nodes, tables, options));
  return Runner(nodes, tables, options, progress).Run();
}

}  // namespace gannet::tpcc
