#include "cli/tpcc/cluster.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "cli/common/data_directory.h"
#include "cli/tpcc/directory.h"
#include "rdma/shm/shm_fabric.h"
#include "tpcc/schema/keys.h"
#include "txn/all_nodes.h"
#include "txn/durable/catalog.h"
#include "txn/offline.h"

namespace gannet::cli {
namespace {

// A terminal accepts no error. The disk of a virtual machine may stand still for more than ten seconds when its credits
// for writes are used up.
constexpr absl::Duration kDurableWithin = absl::Minutes(1);

}  // namespace

StatusOr<std::unique_ptr<TpccCluster>> TpccCluster::Open(const TpccOptions& options, const std::atomic<bool>* stop) {
  const rdma::ShmOptions shm = {.num_nodes = options.nodes,
                                .bytes_per_node = options.memory_per_node,
                                .adversarial = options.adversarial,
                                .seed = options.run.seed};
  auto fabric = options.store.empty() ? rdma::ShmFabric::InProcess(shm) : rdma::ShmFabric::Create(options.store, shm);
  if (!fabric.ok()) return fabric.status();
  std::unique_ptr<TpccCluster> cluster(new TpccCluster);
  cluster->fabric_ = *std::move(fabric);
  const std::string& directory = options.database.directory;
  const bool only_reads = options.verb == TpccVerb::kCheck && !directory.empty();
  txn::DatabaseOptions database_options = options.database;
  if (only_reads) database_options.directory.clear();
  database_options.stop = stop;
  database_options.recovery_threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  database_options.durable_within = kDurableWithin;
  database_options.application =
      TpccApplication(options.warehouses, options.run.load_seed, *options.ordered_index, *options.index_rights);
  tpcc::SchemaOptions schema;
  schema.warehouses = static_cast<uint32_t>(options.warehouses);
  schema.ordered_index = *options.ordered_index;
  schema.index_rights = options.index_rights;
  for (int node = 0; node < options.nodes; ++node) {
    auto database = txn::Database::Open(cluster->fabric_.get(), static_cast<rdma::NodeId>(node), database_options);
    if (!database.ok()) return database.status();
    if (only_reads) GANNET_RETURN_IF_ERROR(txn::AdoptTables(**database, *DiskFiles(), directory));
    auto tables = tpcc::Tables::Create(**database, schema);
    if (!tables.ok()) return tables.status();
    cluster->databases_.push_back(database->get());
    cluster->owned_.push_back(*std::move(database));
    cluster->tables_.push_back(*tables);
  }
  Status started = only_reads ? cluster->RecoverWithoutLog(directory) : absl::OkStatus();
  if (started.ok()) {
    started = txn::OnAllNodes(cluster->databases_, [](txn::Database& database) { return database.Start(); });
  }
  if (!started.ok()) {
    cluster->Abandon();
    return started;
  }
  for (const txn::Database* database : cluster->databases_) {
    if (options.loaded && !only_reads) cluster->recoveries_.push_back(database->recovery());
  }
  return cluster;
}

StatusOr<std::unique_ptr<TpccCluster>> TpccCluster::Attach(const TpccOptions& options,
                                                           const cluster::Patience& patience) {
  const ClusterFile& file = *options.cluster_file;
  StatusOr<std::unique_ptr<cluster::Client>> client = cluster::Client::Attach(file.config, patience, options.database);
  if (!client.ok()) return client.status();
  StatusOr<tpcc::Tables> tables = tpcc::Tables::Create((*client)->database(), SchemaOf(*file.tpcc));
  if (!tables.ok()) return tables.status();
  GANNET_RETURN_IF_ERROR((*client)->Start());
  std::unique_ptr<TpccCluster> attached(new TpccCluster);
  attached->databases_.push_back(&(*client)->database());
  attached->tables_.push_back(*tables);
  attached->client_ = *std::move(client);
  return attached;
}

// Leaves the checked data unchanged: its own log would begin a segment there. Other processes are kept out during that
// time.
Status TpccCluster::RecoverWithoutLog(const std::string& directory) {
  const std::shared_ptr<log::FileSystem> files = DiskFiles();
  for (const txn::Database* database : databases_) {
    auto lock = files->Lock(txn::NodeDirectory(directory, database->node_id(), static_cast<int>(databases_.size())));
    if (!lock.ok()) return lock.status();
    locks_.push_back(*std::move(lock));
  }
  for (txn::Database* database : databases_) {
    log::LogEnd end;
    GANNET_RETURN_IF_ERROR(txn::RecoverInto(*database, *files, directory, &end, &recoveries_.emplace_back()));
  }
  return absl::OkStatus();
}

Status TpccCluster::Checkpoint() {
  return txn::OnAllNodes(databases_, [](txn::Database& database) { return database.Checkpoint(); });
}

void TpccCluster::Abandon() {
  txn::OnAllNodes(databases_, [](txn::Database& database) { return database.CloseWithoutCheckpoint(); }).IgnoreError();
}

Status TpccCluster::Close() {
  return txn::OnAllNodes(databases_, [](txn::Database& database) { return database.Close(); });
}

int MostThreadsOfClient(const cluster::Config& config) {
  return static_cast<int>(tpcc::kLastWorker - tpcc::kFirstWorker + 1) / config.client_slots;
}

uint32_t FirstWorkerOfSlot(const cluster::Config& config, int slot) {
  return tpcc::kFirstWorker + static_cast<uint32_t>(slot * MostThreadsOfClient(config));
}

}  // namespace gannet::cli
