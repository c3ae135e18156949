#include "bench/ycsb/cluster.h"

#include <algorithm>
#include <utility>

#include "rdma/shm/shm_fabric.h"

namespace gannet::bench {

StatusOr<std::unique_ptr<YcsbCluster>> YcsbCluster::Open(const YcsbOptions& o) {
  std::unique_ptr<YcsbCluster> opened(new YcsbCluster(o));
  GANNET_RETURN_IF_ERROR(opened->OpenFabric());
  auto cluster = ycsb::Cluster::Create(opened->fabric_.get(), {.servers = o.servers,
                                                               .server_threads = o.server_threads,
                                                               .machines = o.clients.machines,
                                                               .key_form = o.key_form,
                                                               .keys = o.keys,
                                                               .index = o.index,
                                                               .value_bytes = static_cast<size_t>(o.value_bytes),
                                                               .fill = o.fill_percent / 100.0,
                                                               .sub_models = static_cast<uint32_t>(o.sub_models),
                                                               .train_models = o.paths.reads == ycsb::Path::kOneSided});
  if (!cluster.ok()) return cluster.status();
  opened->cluster_ = *std::move(cluster);
  return opened;
}

YcsbCluster::~YcsbCluster() = default;

// A thread that answers calls, or a client, has a core to itself, as in XStore's evaluation (OSDI'20, section 7).
int YcsbCluster::cores_per_node() const {
  return std::max(options_.server_threads, options_.clients.threads);
}

Status YcsbCluster::OpenFabric() {
  const YcsbOptions& o = options_;
  const int nodes = o.servers + o.clients.machines;
  if (!o.simulated()) {
    auto fabric = rdma::ShmFabric::InProcess({.num_nodes = nodes, .bytes_per_node = BytesPerNode(o), .seed = o.seed});
    if (!fabric.ok()) return fabric.status();
    fabric_ = *std::move(fabric);
    return absl::OkStatus();
  }
  rdma::sim::SimulationOptions simulation;
  simulation.seed = o.seed;
  simulation.cores_per_node = cores_per_node();
  simulation_ = std::make_unique<rdma::sim::Simulation>(simulation);
  rdma::sim::SimFabricOptions options;
  options.num_nodes = nodes;
  options.bytes_per_node = BytesPerNode(o);
  options.nic = *rdma::sim::FindNicProfile(o.nic);
  auto fabric = rdma::sim::SimFabric::Create(simulation_.get(), options);
  if (!fabric.ok()) return fabric.status();
  usage_.emplace(simulation_.get(), fabric->get());
  fabric_ = *std::move(fabric);
  return absl::OkStatus();
}

void YcsbCluster::Watch(bool end) {
  if (usage_.has_value()) end ? usage_->End() : usage_->Begin();
}

std::optional<SimulationReport> YcsbCluster::simulation_report() const {
  if (!usage_.has_value() || !usage_->ended()) return std::nullopt;
  const rdma::sim::SimulationStatistics statistics = simulation_->statistics();
  return SimulationReport{.servers = usage_->Of(0, options_.servers, options_.server_threads),
                          .machines = usage_->Of(options_.servers, fabric_->num_nodes(), options_.clients.threads),
                          .events = statistics.events,
                          .switches = statistics.switches,
                          .virtual_seconds = static_cast<double>(simulation_->now()) * 1e-9};
}

}  // namespace gannet::bench
