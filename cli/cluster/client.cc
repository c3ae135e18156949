#include "cli/cluster/client.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/cluster/open_fabric.h"
#include "tpcc/keys.h"

namespace gannet::cli {
namespace {

constexpr absl::Duration kStartWithin = absl::Seconds(10);

rdma::NodeId NodeOfSlot(const ClusterConfig& config, int slot) {
  return static_cast<rdma::NodeId>(config.num_servers() + slot);
}

// Unavailable: over verbs, if server 0 is not there to be asked.
Status TakeSlot(const ClusterConfig& config, const txn::DatabaseOptions& options, ClusterClient* client) {
  for (int slot = 0; slot < config.client_slots; ++slot) {
    auto database = txn::Database::Open(client->fabric.get(), NodeOfSlot(config, slot), options);
    if (absl::IsFailedPrecondition(database.status())) continue;  // taken
    if (!database.ok()) return database.status();
    client->database = *std::move(database);
    client->slot = slot;
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat("all ", config.client_slots, " client slots of ", config.file,
                                                   " are taken; end a client, or give the cluster more client_slots"));
}

}  // namespace

StatusOr<ClusterClient> AttachClient(const ClusterConfig& config, txn::ReadPathPolicy read_path,
                                     const Patience& patience) {
  ClusterClient client;
  StatusOr<std::unique_ptr<rdma::Fabric>> fabric = OpenFabric(config, std::nullopt);
  if (!fabric.ok()) return fabric.status();
  client.fabric = *std::move(fabric);
  const rdma::VerbsFabric* verbs = AsVerbs(*client.fabric);
  txn::DatabaseOptions options;
  options.data_nodes = config.num_servers();
  options.call_timeout = CallTimeout(config);
  options.read_path = read_path;
  // Over verbs a process sees nobody before it has a place; on shm it need not take one to see who is there.
  if (verbs == nullptr) GANNET_RETURN_IF_ERROR(WaitUntilAttached(*client.fabric, nullptr, config, patience));
  const auto take_slot = [&] { return TakeSlot(config, options, &client); };
  GANNET_RETURN_IF_ERROR(WaitUntilAvailable("server 0 (" + config.servers[0].name + ")", take_slot, patience));
  if (verbs != nullptr) GANNET_RETURN_IF_ERROR(WaitUntilAttached(*client.fabric, verbs, config, patience));
  tpcc::SchemaOptions schema{.warehouses = static_cast<uint32_t>(config.tpcc.warehouses)};
  schema.scale = {.items = config.tpcc.items, .customers_per_district = config.tpcc.customers_per_district};
  StatusOr<tpcc::Tables> tables = tpcc::Tables::Create(*client.database, schema);
  if (!tables.ok()) return tables.status();
  client.tables = *tables;
  GANNET_RETURN_IF_ERROR(client.database->Start(kStartWithin));
  StatusOr<std::unique_ptr<txn::Session>> session = client.database->OpenSession();
  if (!session.ok()) return session.status();
  GANNET_RETURN_IF_ERROR(WaitUntilReady(**session, config, patience));
  return client;
}

int MostThreadsOfClient(const ClusterConfig& config) {
  return static_cast<int>(tpcc::kLastWorker - tpcc::kFirstWorker + 1) / config.client_slots;
}

uint32_t FirstWorkerOfSlot(const ClusterConfig& config, int slot) {
  return tpcc::kFirstWorker + static_cast<uint32_t>(slot * MostThreadsOfClient(config));
}

bool OtherClients(const rdma::Fabric& fabric, const ClusterConfig& config, int slot) {
  const rdma::VerbsFabric* verbs = AsVerbs(fabric);
  for (int other = 0; other < config.client_slots; ++other) {
    if (other == slot) continue;
    if (fabric.Alive(NodeOfSlot(config, other))) return true;
    if (verbs != nullptr && verbs->KnowsOfGuest(NodeOfSlot(config, other))) return true;
  }
  return false;
}

}  // namespace gannet::cli
