#include "lab/experiments/spatial/rack.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "bench/harness/rack_usage.h"
#include "bench/harness/run.h"
#include "bench/json/parts.h"
#include "lab/experiments/rack/read_path_names.h"
#include "lab/experiments/spatial/worker.h"
#include "nlohmann/json.hpp"
#include "txn/run/session.h"

namespace gannet::experiments {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kInsertsPerTransaction = 64;
constexpr uint64_t kBytesBesides = uint64_t{512} << 20;  // of each node, for what clients insert, and buffers
// Key, headers and entry of a rectangle, rounded up to blocks, in nodes that are two thirds full.
constexpr uint64_t kBytesPerRectangle = 512;

txn::TableOptions TableOf(const SpatialRackOptions& options) {
  return {.name = kRectangles,
          .key_kind = index::KeyKind::kBytes,
          .max_key_bytes = index::RectangleKey::kBytes,
          .index = txn::IndexKind::kCatfish,
          .index_options = index::ToText(options.tree),
          .payload_bytes = options.payload_bytes,
          .expected_rows = options.data.rectangles,
          .placement = txn::Placement::OnFirstNode()};
}

int ServerCores(const SpatialRackOptions& options) {
  return options.serving == rdma::sim::Serving::kShared ? options.server_threads : options.machine_cores;
}

// The clients of one run.
class SpatialRun {
 public:
  SpatialRun(SimRack* rack, const SpatialRackOptions& options) : rack_(rack), options_(options), data_(options.data) {}

  Status Run(std::span<const std::unique_ptr<txn::Database>> machines) {
    for (int i = 0; i < options_.clients; ++i) {
      workers_.push_back(std::make_unique<SpatialWorker>(
          SpatialWorker::Options{.database = machines[static_cast<size_t>(i % options_.machines)].get(),
                                 .data = &data_,
                                 .run = &options_,
                                 .number = static_cast<uint64_t>(i)},
          &control_));
    }
    std::vector<bench::Worker*> workers;
    for (const auto& worker : workers_) workers.push_back(worker.get());
    bench::RunOptions run;
    run.warmup = options_.warmup;
    run.duration = options_.duration;
    run.seed = options_.seed;
    GANNET_RETURN_IF_ERROR(bench::CheckDurations(run));
    run.watch = [this](bool end) { end ? usage_.End() : usage_.Begin(); };
    StatusOr<bench::RunResult> result =
        bench::RunWorkers(workers, &control_, run, {.thread_name = "client", .prepared = nullptr, .interval = nullptr});
    if (!result.ok()) return result.status();
    result_ = *std::move(result);
    return absl::OkStatus();
  }

  Json Report() const {
    SpatialStatistics sum;
    for (const auto& worker : workers_) {
      const SpatialStatistics& part = worker->statistics();
      sum.all.Merge(part.all);
      sum.searches.Merge(part.searches);
      sum.inserts += part.inserts;
      sum.rows += part.rows;
      sum.aborted += part.aborted;
      sum.index += part.index;
      txn::AddPaths(part.paths, &sum.paths);
    }
    const auto done = static_cast<double>(sum.all.count());
    const double each = 1 / std::max(1.0, done);
    bench::OperationReport all;
    bench::SetLatencies(sum.all, &all);
    bench::OperationReport searches;
    bench::SetLatencies(sum.searches, &searches);
    const bench::Usage server = usage_.Of(0, 1, ServerCores(options_));
    const bench::Usage machines = usage_.Of(1, 1 + options_.machines, options_.machine_cores);
    Json json;
    json["operations_per_second"] = result_.seconds > 0 ? done / result_.seconds : 0;
    json["seconds"] = result_.seconds;
    json["latency_us"] = bench::LatencyJson(all);
    json["search_latency_us"] = bench::LatencyJson(searches);
    json["verbs"] = {{"read", static_cast<double>(result_.verbs.reads) * each},
                     {"call", static_cast<double>(result_.verbs.calls) * each},
                     {"bytes", static_cast<double>(result_.verbs.bytes_in + result_.verbs.bytes_out) * each},
                     {"round_trips", static_cast<double>(result_.verbs.round_trips) * each}};
    json["inserts"] = sum.inserts;
    json["aborts_per_operation"] = static_cast<double>(sum.aborted) * each;
    json["rows_per_search"] = static_cast<double>(sum.rows) / std::max(1.0, static_cast<double>(sum.searches.count()));
    json["share_of_calls"] = ShareOfCalls(sum);
    json["paths"] = bench::PathsJson(sum.paths);
    json["server"] = bench::UsageJson(server);
    json["machines"] = bench::UsageJson(machines);
    return json;
  }

 private:
  // The share of calls in all searches.
  static double ShareOfCalls(const SpatialStatistics& sum) {
    uint64_t calls = sum.index.fallbacks;
    uint64_t all = sum.index.lookups;
    for (const txn::TablePaths& each : sum.paths) {
      if (each.kind != txn::AccessKind::kSearch) continue;
      calls += each.paths.calls;
      all += each.paths.accesses();
    }
    return static_cast<double>(calls) / static_cast<double>(std::max<uint64_t>(1, all));
  }

  SimRack* const rack_;
  const SpatialRackOptions& options_;
  const DataSet data_;
  bench::RunControl control_;
  bench::RackUsage usage_{&rack_->simulation(), &rack_->fabric()};
  std::vector<std::unique_ptr<SpatialWorker>> workers_;
  bench::RunResult result_;
};

Json ConfigurationOf(const SpatialRackOptions& options) {
  static constexpr const char* kServing[] = {"shared", "polling", "events"};
  Json json = {{"version", GANNET_VERSION},
               {"nic", options.nic},
               {"spread", options.spread},
               {"index", index::ToText(options.tree)},
               {"data", kDataNames[static_cast<size_t>(options.data.kind)]},
               {"rectangles", options.data.rectangles},
               {"most_edge", options.data.most_edge},
               {"window", {options.data.windows.least, options.data.windows.most}},
               {"payload_bytes", options.payload_bytes},
               {"server_threads", options.server_threads},
               {"serving", kServing[static_cast<size_t>(options.serving)]},
               {"machines", options.machines},
               {"machine_cores", options.machine_cores},
               {"clients", options.clients},
               {"insert_percent", options.insert_percent},
               {"reads", kReadPathNames[static_cast<size_t>(options.reads)]},
               {"transactions", !options.index_only.has_value()},
               {"warmup_seconds", absl::ToDoubleSeconds(options.warmup)},
               {"duration_seconds", absl::ToDoubleSeconds(options.duration)},
               {"seed", options.seed}};
  return json;
}

}  // namespace

StatusOr<std::unique_ptr<SpatialRack>> SpatialRack::Load(const SpatialRackOptions& options) {
  std::unique_ptr<SpatialRack> rack(new SpatialRack(options));
  GANNET_RETURN_IF_ERROR(rack->StartServer());
  GANNET_RETURN_IF_ERROR(rack->rack_->OnNodes(0, 1, [&rack](int) { return rack->Fill(); }));
  return rack;
}

SpatialRack::~SpatialRack() = default;

bool SpatialRack::SameLoad(const SpatialRackOptions& a, const SpatialRackOptions& b) {
  const auto load = [](const SpatialRackOptions& o) {
    return std::tie(o.data.kind, o.data.rectangles, o.data.most_edge, o.data.seed, o.payload_bytes, o.server_threads,
                    o.serving, o.machines, o.machine_cores, o.nic, o.spread);
  };
  return load(a) == load(b) && index::ToText(a.tree) == index::ToText(b.tree);
}

Status SpatialRack::StartServer() {
  auto rack = SimRack::Create(
      {.nodes = 1 + loaded_.machines,
       .cores = std::max(ServerCores(loaded_), loaded_.machine_cores),
       .bytes_per_node = kBytesBesides + loaded_.data.rectangles * (kBytesPerRectangle + 2 * loaded_.payload_bytes),
       .nic = loaded_.nic,
       .serving = loaded_.serving,
       .spread = loaded_.spread,
       .seed = loaded_.seed});
  if (!rack.ok()) return rack.status();
  rack_ = *std::move(rack);
  return rack_->OnNodes(0, 1, [this](int node) -> Status {
    auto server = rack_->Open(node, {.data_nodes = 1, .server_threads = loaded_.server_threads, .seed = loaded_.seed},
                              TableOf(loaded_));
    if (!server.ok()) return server.status();
    server_ = *std::move(server);
    return absl::OkStatus();
  });
}

// Fills by inserts, because the variants of the tree differ by them; a bulk load packs all variants alike.
Status SpatialRack::Fill() {
  auto session = server_->OpenSession();
  if (!session.ok()) return session.status();
  const txn::Table* const table = server_->FindTable(kRectangles);
  std::vector<index::RectangleKey> keys;
  std::vector<std::byte> payload(loaded_.payload_bytes);
  const auto insert = [&]() -> Status {
    if (keys.empty()) return absl::OkStatus();
    Status inserted = (*session)->RunBlocking([&](txn::Transaction& transaction) -> coro::Task<Status> {
      for (const index::RectangleKey& key : keys) {
        MakePayload(key.id, payload);
        Status one = transaction.Insert(*table, index::RectangleKeyBytes(key).view(), payload);
        if (!one.ok()) co_return one;
      }
      co_return absl::OkStatus();
    });
    keys.clear();
    return inserted;
  };
  const DataSet data(loaded_.data);
  GANNET_RETURN_IF_ERROR(data.ForEach([&](const index::Rectangle& box, uint64_t id) -> Status {
    keys.push_back({box, id});
    return keys.size() < kInsertsPerTransaction ? absl::OkStatus() : insert();
  }));
  return insert();
}

StatusOr<std::string> SpatialRack::Run(const SpatialRackOptions& options) {
  std::vector<std::unique_ptr<txn::Database>> machines(static_cast<size_t>(options.machines));
  const auto machine = [&machines](int node) -> auto& {
    return machines[static_cast<size_t>(node - 1)];
  };
  GANNET_RETURN_IF_ERROR(rack_->OnNodes(1, 1 + options.machines, [&](int node) -> Status {
    auto opened =
        rack_->Open(node, {.data_nodes = 1, .read_path = options.reads, .seed = options.seed}, TableOf(loaded_));
    if (!opened.ok()) return opened.status();
    machine(node) = *std::move(opened);
    return absl::OkStatus();
  }));
  SpatialRun run(rack_.get(), options);
  GANNET_RETURN_IF_ERROR(run.Run(machines));
  Json json = {{"benchmark", "spatial"}, {"configuration", ConfigurationOf(options)}};
  json.update(run.Report());
  const txn::TableStatistics table = server_->table_statistics().front();
  json["tree"] = {{"rectangles", table.index.keys}, {"height", table.index.height}, {"nodes", table.index.nodes}};
  GANNET_RETURN_IF_ERROR(rack_->OnNodes(1, 1 + options.machines, [&](int node) -> Status {
    machine(node).reset();
    return absl::OkStatus();
  }));
  return json.dump();
}

}  // namespace gannet::experiments
