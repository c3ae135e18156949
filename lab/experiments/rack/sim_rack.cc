#include "lab/experiments/rack/sim_rack.h"

#include <utility>
#include <vector>

namespace gannet::experiments {

StatusOr<std::unique_ptr<SimRack>> SimRack::Create(const SimRackOptions& options) {
  rdma::sim::SimulationOptions simulation;
  simulation.seed = options.seed;
  simulation.cores_per_node = options.cores;
  std::unique_ptr<SimRack> rack(new SimRack(simulation));
  rdma::sim::SimFabricOptions fabric;
  fabric.num_nodes = options.nodes;
  fabric.bytes_per_node = options.bytes_per_node;
  fabric.nic = *rdma::sim::FindNicProfile(options.nic);
  fabric.serving = options.serving;
  fabric.spread = options.spread;
  auto created = rdma::sim::SimFabric::Create(&rack->simulation_, fabric);
  if (!created.ok()) return created.status();
  rack->fabric_ = *std::move(created);
  return rack;
}

Status SimRack::OnNodes(int first, int end, const std::function<Status(int node)>& work) {
  std::vector<Status> statuses(static_cast<size_t>(end - first));
  std::vector<Runtime::Thread*> threads;
  for (int node = first; node < end; ++node) {
    Status* const status = &statuses[static_cast<size_t>(node - first)];
    threads.push_back(
        simulation_.StartOn(static_cast<rdma::NodeId>(node), "node", [&work, node, status] { *status = work(node); }));
  }
  for (Runtime::Thread* thread : threads) simulation_.Join(thread);
  for (const Status& status : statuses) GANNET_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

StatusOr<std::unique_ptr<txn::Database>> SimRack::Open(int node, const txn::DatabaseOptions& options,
                                                       const txn::TableOptions& table) {
  auto opened = txn::Database::Open(&fabric(), static_cast<rdma::NodeId>(node), options);
  if (!opened.ok()) return opened.status();
  const StatusOr<const txn::Table*> created = (*opened)->CreateTable(table);
  if (!created.ok()) return created.status();
  GANNET_RETURN_IF_ERROR((*opened)->Start());
  return opened;
}

}  // namespace gannet::experiments
