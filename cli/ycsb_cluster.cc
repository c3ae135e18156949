#include "cli/ycsb_cluster.h"

#include <utility>

#include "rdma/shm/shm_fabric.h"

namespace gannet::cli {

StatusOr<std::unique_ptr<YcsbCluster>> YcsbCluster::Open(const YcsbOptions& o) {
  std::unique_ptr<YcsbCluster> opened(new YcsbCluster);
  const int nodes = o.servers + o.clients.machines;
  auto fabric = rdma::ShmFabric::InProcess({.num_nodes = nodes, .bytes_per_node = o.bytes_per_node, .seed = o.seed});
  if (!fabric.ok()) return fabric.status();
  opened->fabric_ = *std::move(fabric);
  auto cluster = ycsb::Cluster::Create(opened->fabric_.get(), {.servers = o.servers,
                                                               .server_threads = o.server_threads,
                                                               .machines = o.clients.machines,
                                                               .key_form = o.key_form,
                                                               .keys = o.keys,
                                                               .index = o.index,
                                                               .value_bytes = static_cast<size_t>(o.value_bytes),
                                                               .fill = o.fill_percent / 100.0,
                                                               .sub_models = static_cast<uint32_t>(o.sub_models)});
  if (!cluster.ok()) return cluster.status();
  opened->cluster_ = *std::move(cluster);
  return opened;
}

YcsbCluster::~YcsbCluster() = default;

void YcsbCluster::Watch(bool) {}

}  // namespace gannet::cli
