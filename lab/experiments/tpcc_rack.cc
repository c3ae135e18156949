#include "lab/experiments/tpcc_rack.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/thread.h"
#include "bench/harness/rack_usage.h"
#include "bench/json/parts.h"
#include "lab/experiments/rack/read_path_names.h"
#include "lab/experiments/rack/sim_rack.h"
#include "nlohmann/json.hpp"
#include "tpcc/driver.h"
#include "tpcc/loader.h"
#include "txn/database.h"

namespace gannet::experiments {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLocationBytes = size_t{64} << 10;  // of each worker, for each hash index of each data server

class TpccRack {
 public:
  explicit TpccRack(const TpccRackOptions& options)
      : options_(options), schema_{.warehouses = options.warehouses, .scale = options.scale} {}

  StatusOr<std::string> Run() {
    GANNET_RETURN_IF_ERROR(Start());
    GANNET_RETURN_IF_ERROR(tpcc::Load(nodes_, tables_, {.threads = 1, .seed = options_.seed, .date = 1}, nullptr));
    bench::RackUsage usage(&rack_->simulation(), &rack_->fabric());
    tpcc::RunOptions run = CommonRun();
    run.threads = options_.machines * options_.threads;
    run.coroutines = options_.coroutines;
    run.warmup = options_.warmup;
    run.duration = options_.duration;
    if (options_.interval > absl::ZeroDuration()) run.interval = options_.interval;
    Thread step;
    Status stepped;
    run.watch = [&](bool end) {
      end ? usage.End() : usage.Begin();
      if (!end && options_.step.has_value()) step = Thread("step", [this, &stepped] { stepped = RunStep(); });
    };
    run.seed = options_.seed;
    const StatusOr<tpcc::RunReport> report =
        tpcc::RunBenchmark(Clients(), TablesOfClients(), run, [this](const tpcc::IntervalReport& interval) {
          if (!interval.warming_up) calls_.push_back(ShareOfCalls());
        });
    if (step.joinable()) step.join();
    if (!report.ok()) return report.status();
    GANNET_RETURN_IF_ERROR(stepped);
    std::string json = JsonOf(*report, usage);
    GANNET_RETURN_IF_ERROR(Close());
    return json;
  }

 private:
  int step_machines() const { return options_.step.has_value() ? options_.step->machines : 0; }
  // The data servers, then the client machines, then those of the step.
  int num_nodes() const { return options_.data_nodes + options_.machines + step_machines(); }
  std::span<txn::Database* const> Clients() const {
    return std::span(nodes_).subspan(static_cast<size_t>(options_.data_nodes), static_cast<size_t>(options_.machines));
  }
  std::span<const tpcc::Tables> TablesOfClients() const {
    return std::span(tables_).subspan(static_cast<size_t>(options_.data_nodes), static_cast<size_t>(options_.machines));
  }

  tpcc::RunOptions CommonRun() const {
    tpcc::RunOptions run;
    run.mix = options_.mix;
    run.load_seed = options_.seed;
    return run;
  }

  // The machines of the step wait for its begin, and run.
  Status RunStep() {
    const TpccLoadStep& step = *options_.step;
    SleepForNanos(static_cast<uint64_t>(absl::ToInt64Nanoseconds(step.begin)));
    tpcc::RunOptions run = CommonRun();
    run.threads = step.machines * step.threads;
    run.coroutines = step.coroutines;
    run.warmup = absl::ZeroDuration();
    run.duration = step.length;
    run.seed = Mix64(options_.seed);
    // The numbers after those of the clients' workers.
    const auto clients = static_cast<uint32_t>(options_.machines * options_.threads);
    run.first_worker = tpcc::kFirstWorker + (clients + options_.warehouses - 1) / options_.warehouses;
    const size_t first = static_cast<size_t>(options_.data_nodes) + static_cast<size_t>(options_.machines);
    return tpcc::RunBenchmark(std::span(nodes_).subspan(first), std::span(std::as_const(tables_)).subspan(first), run,
                              nullptr)
        .status();
  }

  // The share of calls in the clients' accesses since the last time that it was asked for.
  double ShareOfCalls() {
    uint64_t calls = 0;
    uint64_t all = 0;
    for (const txn::Database* database : Clients()) {
      for (const txn::TablePaths& each : database->path_statistics()) {
        calls += each.paths.calls;
        all += each.paths.accesses();
      }
    }
    const uint64_t before = std::exchange(all_before_, all);
    const uint64_t calls_before = std::exchange(calls_before_, calls);
    return static_cast<double>(calls - calls_before) / std::max(1.0, static_cast<double>(all - before));
  }

  Status Start() {
    SimRackOptions rack{.nodes = num_nodes(),
                        .cores = std::max(options_.server_threads, options_.threads),
                        .nic = options_.nic,
                        .spread = options_.spread,
                        .seed = options_.seed};
    if (options_.step.has_value()) rack.cores = std::max(rack.cores, options_.step->threads);
    auto created = SimRack::Create(rack);
    if (!created.ok()) return created.status();
    rack_ = *std::move(created);
    databases_.resize(static_cast<size_t>(num_nodes()));
    tables_.resize(databases_.size());
    GANNET_RETURN_IF_ERROR(OnEachNode([this](int node) { return StartNode(node); }));
    for (const auto& database : databases_) nodes_.push_back(database.get());
    return absl::OkStatus();
  }

  Status StartNode(int node) {
    txn::DatabaseOptions options;
    options.data_nodes = options_.data_nodes;
    options.read_path = node < options_.data_nodes + options_.machines ? options_.reads : options_.step->reads;
    options.server_threads = node < options_.data_nodes ? options_.server_threads : 1;
    options.location_cache_bytes = kLocationBytes;
    options.seed = options_.seed;
    auto opened = txn::Database::Open(&rack_->fabric(), static_cast<rdma::NodeId>(node), options);
    if (!opened.ok()) return opened.status();
    std::unique_ptr<txn::Database>& database = databases_[static_cast<size_t>(node)];
    database = *std::move(opened);
    const StatusOr<tpcc::Tables> tables = tpcc::Tables::Create(*database, schema_);
    if (!tables.ok()) return tables.status();
    tables_[static_cast<size_t>(node)] = *tables;
    return database->Start();
  }

  Status Close() {
    GANNET_RETURN_IF_ERROR(OnEachNode([this](int node) { return databases_[static_cast<size_t>(node)]->Close(); }));
    return OnEachNode([this](int node) -> Status {
      databases_[static_cast<size_t>(node)].reset();
      return absl::OkStatus();
    });
  }

  Status OnEachNode(const std::function<Status(int node)>& work) { return rack_->OnNodes(0, num_nodes(), work); }

  Json Configuration() const {
    return {{"version", GANNET_VERSION},
            {"nic", options_.nic},
            {"spread", options_.spread},
            {"data_nodes", options_.data_nodes},
            {"server_threads", options_.server_threads},
            {"machines", options_.machines},
            {"threads_per_machine", options_.threads},
            {"coroutines", options_.coroutines},
            {"warehouses", options_.warehouses},
            {"items", options_.scale.items},
            {"customers_per_district", options_.scale.customers_per_district},
            {"mix", options_.mix},
            {"reads", kReadPathNames[static_cast<size_t>(options_.reads)]},
            {"warmup_seconds", absl::ToDoubleSeconds(options_.warmup)},
            {"duration_seconds", absl::ToDoubleSeconds(options_.duration)},
            {"seed", options_.seed}};
  }

  std::string JsonOf(const tpcc::RunReport& run, const bench::RackUsage& usage) const {
    Json json = {{"benchmark", "tpcc"},
                 {"configuration", Configuration()},
                 {"transactions_per_second", run.transactions_per_second},
                 {"seconds", run.seconds}};
    const double transactions = std::max(1.0, run.transactions_per_second * run.seconds);
    json["verbs"] = {{"read", static_cast<double>(run.verbs.reads) / transactions},
                     {"call", static_cast<double>(run.verbs.calls) / transactions},
                     {"bytes", static_cast<double>(run.verbs.bytes_in + run.verbs.bytes_out) / transactions},
                     {"round_trips", static_cast<double>(run.verbs.round_trips) / transactions}};
    json["transactions"] = Json::object();
    for (size_t i = 0; i < tpcc::kProcedures; ++i) {
      const tpcc::ProcedureReport& p = run.procedures[i];
      if (p.committed == 0) continue;
      json["transactions"][tpcc::kProcedureNames[i]] = {
          {"committed", p.committed},
          {"aborted", p.aborted},
          {"latency_us", {{"mean", p.mean_us}, {"p50", p.p50_us}, {"p99", p.p99_us}}}};
    }
    const size_t most = static_cast<size_t>(std::ranges::max_element(options_.mix) - options_.mix.begin());
    json["latency_of"] = tpcc::kProcedureNames[most];
    json["timeline"] = Json::array();
    if (options_.interval > absl::ZeroDuration()) {
      for (size_t i = 0; i < run.timeline.size(); ++i) {
        const tpcc::IntervalReport& interval = run.timeline[i];
        json["timeline"].push_back({{"at_seconds", interval.at_seconds},
                                    {"transactions_per_second", interval.Rate(interval.transactions)},
                                    {"share_of_calls", i < calls_.size() ? calls_[i] : 0}});
      }
    }
    uint64_t lookups = 0;
    uint64_t fallbacks = 0;
    for (const auto& [table, cache] : run.client_caches) {
      lookups += cache.lookups;
      fallbacks += cache.fallbacks;
    }
    json["paths"] = bench::PathsJson(run.paths);
    json["clients"] = {{"lookups", lookups}, {"fallbacks", fallbacks}};
    const bench::Usage servers = usage.Of(0, options_.data_nodes, options_.server_threads);
    json["servers"] = {{"cpu", servers.cpu}, {"nic_serve", servers.nic_serve}, {"link_out", servers.link_out}};
    return json.dump();
  }

  const TpccRackOptions options_;
  const tpcc::SchemaOptions schema_;
  std::unique_ptr<SimRack> rack_;  // destroyed after the databases
  std::vector<std::unique_ptr<txn::Database>> databases_;
  std::vector<txn::Database*> nodes_;
  std::vector<tpcc::Tables> tables_;
  std::vector<double> calls_;  // of each interval of the measurement: share of the accesses
  uint64_t calls_before_ = 0;  // sums up to the last interval
  uint64_t all_before_ = 0;
};

}  // namespace

StatusOr<std::string> RunTpccRack(const TpccRackOptions& options) {
  return TpccRack(options).Run();
}

}  // namespace gannet::experiments
