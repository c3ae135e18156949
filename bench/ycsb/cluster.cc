#include "bench/ycsb/cluster.h"

#include <algorithm>
#include <utility>

#include "bench/ycsb/version_reads.h"
#include "log/file/simulated/faulty_file_system.h"
#include "log/file/simulated/timed_disk.h"
#include "rdma/shm/shm_fabric.h"

namespace gannet::bench {

StatusOr<std::unique_ptr<YcsbCluster>> YcsbCluster::Open(const YcsbOptions& o) {
  std::unique_ptr<YcsbCluster> opened(new YcsbCluster(o));
  GANNET_RETURN_IF_ERROR(opened->OpenFabric());
  ycsb::ClusterOptions options = o.cluster_options();
  if (o.durability != ycsb::DurabilityMode::kNone) {
    // A disk in memory without faults.
    options.disk = std::make_shared<log::TimedDisk>(std::make_unique<log::FaultyFileSystem>(o.seed),
                                                    *log::FindDiskProfile(o.disk));
  }
  auto cluster = ycsb::Cluster::Create(opened->fabric_.get(), options);
  if (!cluster.ok()) return cluster.status();
  opened->cluster_ = *std::move(cluster);
  return opened;
}

StatusOr<std::unique_ptr<YcsbCluster>> YcsbCluster::Attach(const YcsbOptions& o, const cluster::Patience& patience) {
  StatusOr<std::unique_ptr<cluster::BareClient>> client = cluster::BareClient::Open(*o.cluster_config, patience);
  if (!client.ok()) return client.status();
  std::unique_ptr<YcsbCluster> attached(new YcsbCluster(o));
  attached->client_ = *std::move(client);
  GANNET_RETURN_IF_ERROR(attached->client_->TakeSlot([&](rdma::NodeId node) {
    auto cluster = ycsb::Cluster::Attach(&attached->client_->fabric(), node, o.cluster_options());
    if (!cluster.ok()) return cluster.status();
    attached->cluster_ = *std::move(cluster);
    return absl::OkStatus();
  }));
  GANNET_RETURN_IF_ERROR(attached->client_->WaitUntilReady(*attached->cluster_->machine(0).node));
  return attached;
}

YcsbCluster::~YcsbCluster() = default;

// A thread that answers calls, or a client, has a core to itself, as in XStore's evaluation (OSDI'20, section 7).
int YcsbCluster::cores_per_node() const {
  const int servers = options_.server_threads;
  return options_.colocated ? servers + options_.clients.threads : std::max(servers, options_.clients.threads);
}

Status YcsbCluster::OpenFabric() {
  const YcsbOptions& o = options_;
  const int nodes = o.colocated ? o.servers : o.servers + o.clients.machines;
  if (!o.simulated()) {
    auto fabric = rdma::ShmFabric::InProcess({.num_nodes = nodes, .bytes_per_node = BytesPerNode(o), .seed = o.seed});
    if (!fabric.ok()) return fabric.status();
    fabric_ = *std::move(fabric);
    return absl::OkStatus();
  }
  rdma::sim::SimulationOptions simulation;
  simulation.seed = o.seed;
  simulation.cores_per_node = cores_per_node();
  if (o.contended_lines) simulation.costs.AddContendedLines();
  simulation_ = std::make_unique<rdma::sim::Simulation>(simulation);
  rdma::sim::SimFabricOptions options;
  options.num_nodes = nodes;
  options.bytes_per_node = BytesPerNode(o);
  options.nic = *rdma::sim::FindNicProfile(o.nic);
  options.spread = o.spread;
  auto fabric = rdma::sim::SimFabric::Create(simulation_.get(), options);
  if (!fabric.ok()) return fabric.status();
  usage_.emplace(simulation_.get(), fabric->get());
  fabric_ = *std::move(fabric);
  if (!o.version_reads) return absl::OkStatus();
  inner_fabric_ = std::move(fabric_);
  fabric_ = WithVersionReads(inner_fabric_.get());
  return absl::OkStatus();
}

void YcsbCluster::Watch(bool end) {
  if (usage_.has_value()) end ? usage_->End() : usage_->Begin();
}

std::optional<SimulationReport> YcsbCluster::simulation_report() const {
  if (!usage_.has_value() || !usage_->ended()) return std::nullopt;
  const rdma::sim::SimulationStatistics statistics = simulation_->statistics();
  const int nodes = fabric_->num_nodes();
  const bool both = options_.colocated;
  return SimulationReport{.servers = usage_->Of(0, options_.servers, both ? cores_per_node() : options_.server_threads),
                          .machines = both ? usage_->Of(0, nodes, cores_per_node())
                                           : usage_->Of(options_.servers, nodes, options_.clients.threads),
                          .events = statistics.events,
                          .switches = statistics.switches,
                          .virtual_seconds = static_cast<double>(simulation_->now()) * 1e-9};
}

}  // namespace gannet::bench
