#include "cli/ycsb_cluster.h"

#include <algorithm>
#include <utility>

#include "rdma/shm/shm_fabric.h"

namespace gannet::cli {

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

// A thread that answers calls, or a client, has a core to itself, as on the seed's testbed.
int YcsbCluster::cores_per_node() const {
  return std::max(options_.server_threads, options_.clients.threads);
}

Status YcsbCluster::OpenFabric() {
  const YcsbOptions& o = options_;
  const int nodes = o.servers + o.clients.machines;
  if (!o.simulated()) {
    auto fabric = rdma::ShmFabric::InProcess({.num_nodes = nodes, .bytes_per_node = o.bytes_per_node, .seed = o.seed});
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
  options.bytes_per_node = o.bytes_per_node;
  options.nic = *rdma::sim::FindNicProfile(o.nic);
  auto fabric = rdma::sim::SimFabric::Create(simulation_.get(), options);
  if (!fabric.ok()) return fabric.status();
  sim_fabric_ = fabric->get();
  fabric_ = *std::move(fabric);
  return absl::OkStatus();
}

void YcsbCluster::Watch(bool end) {
  if (simulation_ != nullptr) (end ? end_ : begin_) = Look();
}

YcsbCluster::Snapshot YcsbCluster::Look() const {
  Snapshot snapshot;
  snapshot.now = simulation_->now();
  for (int node = 0; node < fabric_->num_nodes(); ++node) {
    const auto id = static_cast<rdma::NodeId>(node);
    snapshot.nodes.push_back({simulation_->busy_nanos(id), sim_fabric_->nic_statistics(id)});
  }
  return snapshot;
}

Usage YcsbCluster::UsageOf(int first, int end, int cores) const {
  Usage usage;
  const double span = static_cast<double>(std::max<uint64_t>(1, end_.now - begin_.now)) * (end - first);
  const auto share = [span](uint64_t later, uint64_t earlier) { return static_cast<double>(later - earlier) / span; };
  for (int node = first; node < end; ++node) {
    const Busy& a = begin_.nodes[static_cast<size_t>(node)];
    const Busy& b = end_.nodes[static_cast<size_t>(node)];
    usage.cpu += share(b.cpu, a.cpu) / cores;
    usage.nic_send += share(b.nic.busy_send_nanos, a.nic.busy_send_nanos);
    usage.nic_serve += share(b.nic.busy_serve_nanos, a.nic.busy_serve_nanos);
    usage.link_out += share(b.nic.busy_out_nanos, a.nic.busy_out_nanos);
    usage.link_in += share(b.nic.busy_in_nanos, a.nic.busy_in_nanos);
  }
  return usage;
}

std::optional<SimulationReport> YcsbCluster::simulation_report() const {
  if (simulation_ == nullptr || end_.nodes.empty()) return std::nullopt;
  const rdma::sim::SimulationStatistics statistics = simulation_->statistics();
  return SimulationReport{.servers = UsageOf(0, options_.servers, options_.server_threads),
                          .machines = UsageOf(options_.servers, fabric_->num_nodes(), options_.clients.threads),
                          .events = statistics.events,
                          .switches = statistics.switches,
                          .virtual_seconds = static_cast<double>(simulation_->now()) * 1e-9};
}

}  // namespace gannet::cli
