#include "lab/experiments/kind_rack/rack.h"

#include <algorithm>
#include <array>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "bench/harness/operation_statistics.h"
#include "bench/harness/rack_usage.h"
#include "bench/harness/run.h"
#include "bench/json/parts.h"
#include "index/registry.h"
#include "lab/experiments/kind_rack/client.h"
#include "nlohmann/json.hpp"
#include "txn/bulk_loader.h"
#include "txn/run/session.h"

namespace gannet::experiments::kind_rack {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kBytesBesides = uint64_t{512} << 20;  // of each node, for what clients insert, and buffers
constexpr uint64_t kTrainingNanos = 500'000'000;         // more than the training of a million keys takes
constexpr uint64_t kBytesPerRow = 1024;                  // at most: record and index

txn::TableOptions TableOf(const RackOptions& options) {
  const bool spatial = index::EntryOf(options.kind).traits.spatial;
  return {.name = kTable,
          .key_kind = spatial ? index::KeyKind::kBytes : index::KeyKind::kInteger,
          .max_key_bytes = spatial ? index::RectangleKey::kBytes : index::kIntegerKeyBytes,
          .index = options.kind,
          .payload_bytes = kPayloadBytes,
          .expected_rows = options.rows,
          .placement = txn::Placement::OnFirstNode()};
}

// The clients of one run.
class ClientRun {
 public:
  ClientRun(SimRack* rack, const RackOptions& options, const Rows& rows)
      : rack_(rack), options_(options), rows_(rows) {}

  Status Run(std::span<const std::unique_ptr<txn::Database>> machines) {
    for (int i = 0; i < options_.clients; ++i) {
      clients_.push_back(std::make_unique<Client>(
          Client::Options{.database = machines[static_cast<size_t>(i % options_.machines)].get(),
                          .rows = &rows_,
                          .work = options_.work,
                          .number = static_cast<uint64_t>(i),
                          .clients = static_cast<uint64_t>(options_.clients),
                          .seed = options_.seed},
          &control_));
    }
    std::vector<bench::Worker*> workers;
    for (const auto& client : clients_) workers.push_back(client.get());
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
    for (const auto& machine : machines) {
      for (const auto& [table, bytes] : machine->shared_cache_bytes()) cache_bytes_ += bytes;
    }
    return absl::OkStatus();
  }

  Json Report() const {
    bench::Histogram latency;
    ClientReport sum;
    for (const auto& client : clients_) {
      const ClientReport& part = client->report();
      latency.Merge(part.latency);
      sum.rows += part.rows;
      sum.aborted += part.aborted;
      sum.index += part.index;
      txn::AddPaths(part.paths, &sum.paths);
    }
    const auto done = static_cast<double>(latency.count());
    const double each = 1 / std::max(1.0, done);
    bench::OperationReport all;
    bench::SetLatencies(latency, &all);
    const rdma::VerbCounters& verbs = result_.verbs;
    const bench::Usage server = usage_.Of(0, 1, options_.server_threads);
    Json json;
    json["operations_per_second"] = result_.seconds > 0 ? done / result_.seconds : 0;
    json["seconds"] = result_.seconds;
    json["latency_us"] = bench::LatencyJson(all);
    json["verbs"] = {{"read", static_cast<double>(verbs.reads) * each},
                     {"write", static_cast<double>(verbs.writes) * each},
                     {"atomic", static_cast<double>(verbs.compare_and_swaps + verbs.fetch_and_adds) * each},
                     {"call", static_cast<double>(verbs.calls) * each},
                     {"bytes", static_cast<double>(verbs.bytes_in + verbs.bytes_out) * each},
                     {"round_trips", static_cast<double>(verbs.round_trips) * each}};
    json["aborts_per_operation"] = static_cast<double>(sum.aborted) * each;
    json["rows_per_operation"] = static_cast<double>(sum.rows) * each;
    json["fallbacks_per_lookup"] =
        static_cast<double>(sum.index.fallbacks) / std::max(1.0, static_cast<double>(sum.index.lookups));
    json["share_of_calls"] = ShareOfCalls(sum.paths);
    json["paths"] = bench::PathsJson(sum.paths);
    json["cache_bytes_per_key"] = static_cast<double>(cache_bytes_ + sum.index.cache_bytes) /
                                  static_cast<double>(options_.machines) / static_cast<double>(options_.rows);
    json["server"] = bench::UsageJson(server);
    return json;
  }

 private:
  static double ShareOfCalls(const std::vector<txn::TablePaths>& paths) {
    uint64_t calls = 0;
    uint64_t all = 0;
    for (const txn::TablePaths& each : paths) {
      calls += each.paths.calls;
      all += each.paths.accesses();
    }
    return static_cast<double>(calls) / static_cast<double>(std::max<uint64_t>(1, all));
  }

  SimRack* const rack_;
  const RackOptions& options_;
  const Rows& rows_;
  bench::RunControl control_;
  bench::RackUsage usage_{&rack_->simulation(), &rack_->fabric()};
  std::vector<std::unique_ptr<Client>> clients_;
  bench::RunResult result_;
  uint64_t cache_bytes_ = 0;  // that the clients of a machine share, of all machines
};

Json ConfigurationOf(const RackOptions& options) {
  return {{"version", GANNET_VERSION},
          {"index", index::EntryOf(options.kind).name},
          {"rows", options.rows},
          {"payload_bytes", kPayloadBytes},
          {"nic", options.nic},
          {"spread", options.spread},
          {"server_threads", options.server_threads},
          {"machines", options.machines},
          {"machine_cores", options.machine_cores},
          {"clients", options.clients},
          {"work", kWorkNames[static_cast<size_t>(options.work)]},
          {"reads", "one-sided"},
          {"warmup_seconds", absl::ToDoubleSeconds(options.warmup)},
          {"duration_seconds", absl::ToDoubleSeconds(options.duration)},
          {"seed", options.seed}};
}

Json IndexJson(const txn::TableStatistics& table, uint64_t rows) {
  const auto per_row = [rows](uint64_t bytes) { return static_cast<double>(bytes) / static_cast<double>(rows); };
  return {{"keys", table.index.keys},
          {"height", table.index.height},
          {"nodes", table.index.nodes},
          {"bytes_per_key", per_row(table.index.registered_bytes + table.index.private_bytes)},
          {"record_bytes_per_key", per_row(table.record_bytes)}};
}

}  // namespace

Rack::Rack(const RackOptions& options)
    : loaded_(options), rows_(options.rows, index::EntryOf(options.kind).traits.spatial, options.seed) {}

Rack::~Rack() = default;

StatusOr<std::unique_ptr<Rack>> Rack::Load(const RackOptions& options) {
  std::unique_ptr<Rack> rack(new Rack(options));
  GANNET_RETURN_IF_ERROR(rack->StartServer());
  GANNET_RETURN_IF_ERROR(rack->rack_->OnNodes(0, 1, [&rack](int) { return rack->Fill(); }));
  GANNET_RETURN_IF_ERROR(rack->Train());
  return rack;
}

bool Rack::SameLoad(const RackOptions& a, const RackOptions& b) {
  const auto load = [](const RackOptions& o) {
    return std::tie(o.kind, o.rows, o.server_threads, o.machines, o.machine_cores, o.nic, o.spread, o.seed);
  };
  return load(a) == load(b);
}

Status Rack::StartServer() {
  auto rack = SimRack::Create({.nodes = 1 + loaded_.machines,
                               .cores = std::max(loaded_.server_threads, loaded_.machine_cores),
                               .bytes_per_node = kBytesBesides + loaded_.rows * kBytesPerRow,
                               .nic = loaded_.nic,
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

Status Rack::Fill() {
  auto session = server_->OpenSession();
  if (!session.ok()) return session.status();
  txn::BulkLoader loader(session->get(), server_->FindTable(kTable));
  std::array<std::byte, kPayloadBytes> payload;
  for (uint64_t row = 0; row < loaded_.rows; ++row) {
    const RowKey key = rows_.KeyOf(row);
    Rows::MakePayload(key.integer(), row, payload);
    GANNET_RETURN_IF_ERROR(loader.Add(key.view(), payload));
  }
  return loader.Finish();
}

// The server trains models from the first one-sided read on, and they are not part of a run. So a client comes before,
// and leaves when that is done.
Status Rack::Train() {
  return rack_->OnNodes(1, 2, [this](int node) -> Status {
    auto machine = rack_->Open(
        node, {.data_nodes = 1, .read_path = txn::ReadPathPolicy::kOneSided, .seed = loaded_.seed}, TableOf(loaded_));
    if (!machine.ok()) return machine.status();
    const txn::Table* const table = (*machine)->FindTable(kTable);
    const RowKey key = rows_.KeyOf(0);
    std::array<std::byte, kPayloadBytes> payload;
    GANNET_RETURN_IF_ERROR((*machine)->Run(
        [&](txn::BlockingTransaction& transaction) { return transaction.Get(*table, key.view(), payload); }));
    SleepForNanos(kTrainingNanos);
    return absl::OkStatus();
  });
}

StatusOr<std::string> Rack::Run(const RackOptions& options) {
  const txn::TableStatistics table = server_->table_statistics().front();
  std::vector<std::unique_ptr<txn::Database>> machines(static_cast<size_t>(options.machines));
  const auto machine = [&machines](int node) -> auto& {
    return machines[static_cast<size_t>(node - 1)];
  };
  GANNET_RETURN_IF_ERROR(rack_->OnNodes(1, 1 + options.machines, [&](int node) -> Status {
    auto opened = rack_->Open(
        node, {.data_nodes = 1, .read_path = txn::ReadPathPolicy::kOneSided, .seed = options.seed}, TableOf(loaded_));
    if (!opened.ok()) return opened.status();
    machine(node) = *std::move(opened);
    return absl::OkStatus();
  }));
  ClientRun run(rack_.get(), options, rows_);
  GANNET_RETURN_IF_ERROR(run.Run(machines));
  Json json = {{"benchmark", "kinds"}, {"configuration", ConfigurationOf(options)}};
  json.update(run.Report());
  json["index"] = IndexJson(table, options.rows);
  GANNET_RETURN_IF_ERROR(rack_->OnNodes(1, 1 + options.machines, [&](int node) -> Status {
    machine(node).reset();
    return absl::OkStatus();
  }));
  return json.dump();
}

}  // namespace gannet::experiments::kind_rack
