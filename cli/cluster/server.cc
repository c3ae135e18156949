#include "cli/cluster/server.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/thread.h"
#include "cli/cluster/open_fabric.h"
#include "cli/parse.h"
#include "tpcc/loader.h"
#include "tpcc/schema.h"

namespace gannet::cli {
namespace {

constexpr uint64_t kLookNanos = 20'000'000;  // between two looks at who is there

// All others are attached already: they only have to remain so.
constexpr absl::Duration kStartWithin = absl::Seconds(10);

std::string NodeName(const ClusterConfig& config, int node) {
  return node < config.num_servers() ? absl::StrCat("server ", node, " (", config.servers[node].name, ")")
                                     : absl::StrCat("client slot ", node - config.num_servers());
}

}  // namespace

StatusOr<std::unique_ptr<ClusterServer>> ClusterServer::Start(const ClusterConfig& config, int id,
                                                              const Patience& patience, CallMeter* meter) {
  std::unique_ptr<ClusterServer> server(new ClusterServer(config, id));
  StatusOr<std::unique_ptr<rdma::Fabric>> fabric = OpenFabric(config, id);
  if (!fabric.ok()) return fabric.status();
  server->verbs_ = AsVerbs(**fabric);
  server->fabric_ = meter == nullptr ? *std::move(fabric) : Metered(*std::move(fabric), meter);
  txn::DatabaseOptions options;
  options.data_nodes = config.num_servers();
  options.call_timeout = CallTimeout(config);
  options.stop = patience.stop;
  options.server_threads = config.servers[static_cast<size_t>(id)].server_threads;
  auto database = txn::Database::Open(server->fabric_.get(), static_cast<rdma::NodeId>(id), options);
  if (!database.ok()) return database.status();
  server->database_ = *std::move(database);
  server->hello_.Register(server->database_->node());
  GANNET_RETURN_IF_ERROR(server->Load(patience));
  server->hello_.Set(ServerState::kReady);
  return server;
}

Status ClusterServer::Load(const Patience& patience) {
  tpcc::SchemaOptions schema{.warehouses = static_cast<uint32_t>(config_.tpcc.warehouses)};
  schema.scale = {.items = config_.tpcc.items, .customers_per_district = config_.tpcc.customers_per_district};
  StatusOr<tpcc::Tables> tables = tpcc::Tables::Create(*database_, schema);
  if (!tables.ok()) return tables.status();
  GANNET_RETURN_IF_ERROR(WaitUntilAttached(*fabric_, verbs_, config_, patience));
  GANNET_RETURN_IF_ERROR(database_->Start(kStartWithin));
  warehouses_ = static_cast<int>(
      tpcc::WarehousesOfNode(schema.warehouses, static_cast<rdma::NodeId>(id_), config_.num_servers()));
  patience.note(absl::StrCat("loading ", warehouses_, warehouses_ == 1 ? " warehouse" : " warehouses"));
  const uint64_t start = NowNanos();
  const std::vector<txn::Database*> databases = {database_.get()};
  const std::vector<tpcc::Tables> all_tables = {*tables};
  Status loaded = tpcc::Load(databases, all_tables,
                             {.threads = std::max(1, HardwareThreads()), .seed = config_.tpcc.seed}, nullptr);
  load_seconds_ = static_cast<double>(NowNanos() - start) * 1e-9;
  if (!absl::IsResourceExhausted(loaded)) return loaded;
  return absl::ResourceExhaustedError(absl::StrCat(absl::string_view(loaded.message()), "; give the servers of ",
                                                   config_.file, " more memory, or [tpcc] fewer warehouses"));
}

ClusterServer::~ClusterServer() {
  hello_.Set(ServerState::kLeaving);
}

Status ClusterServer::ServeUntilStopped(const Patience& patience) {
  const int nodes = fabric_->num_nodes();
  std::vector<char> there(static_cast<size_t>(nodes));
  for (int node = 0; node < config_.num_servers(); ++node) there[static_cast<size_t>(node)] = 1;
  RefusalNotes notes;
  while (!patience.stop->load(std::memory_order_relaxed)) {
    if (verbs_ != nullptr) notes.Look(*verbs_, patience);
    for (int node = 0; node < nodes; ++node) {
      const char now = fabric_->Alive(static_cast<rdma::NodeId>(node)) ? 1 : 0;
      if (now == std::exchange(there[static_cast<size_t>(node)], now)) continue;
      if (node == id_) return absl::UnavailableError("the other processes hold this one for dead; its data is lost");
      patience.note(absl::StrCat(NodeName(config_, node), now != 0 ? " has come" : " has gone"));
    }
    SleepForNanos(kLookNanos);
  }
  return absl::OkStatus();
}

}  // namespace gannet::cli
