#include "bench/ycsb/result.h"

#include <algorithm>

#include "bench/harness/resident_memory.h"

namespace gannet::bench {
namespace {

// `server` of `servers` joins *sum, in which averages are over servers.
void AddModel(const index::XStore::ModelStatistics& server, int servers, index::XStore::ModelStatistics* sum) {
  sum->generation = std::max(sum->generation, server.generation);
  sum->retrainings += server.retrainings;
  sum->sub_models += server.sub_models;
  sum->table_entries += server.table_entries;
  sum->model_bytes += server.model_bytes;
  sum->leaves_per_lookup += server.leaves_per_lookup / servers;
  sum->mean_error += server.mean_error / servers;
  sum->mean_range += server.mean_range / servers;
}

}  // namespace

void MeasureStore(ycsb::Cluster* cluster, YcsbResult* result) {
  const int servers = cluster->options().servers;
  for (int i = 0; i < servers; ++i) {
    ycsb::Server& server = cluster->server(i);
    const index::Statistics statistics = server.index().statistics();
    result->index.keys += statistics.keys;
    result->index.registered_bytes += statistics.registered_bytes;
    result->index.private_bytes += statistics.private_bytes;
    result->index.nodes += statistics.nodes;
    result->index.height = std::max(result->index.height, statistics.height);
    const rdma::SlabStatistics memory = server.memory();
    result->memory.capacity_bytes += memory.capacity_bytes;
    result->memory.carved_bytes += memory.carved_bytes;
    result->memory.free_bytes += memory.free_bytes;
    if (server.xstore() == nullptr) continue;
    if (!result->model.has_value()) result->model.emplace();
    AddModel(server.xstore()->model_statistics(), servers, &*result->model);
  }
  result->resident_bytes = ResidentBytes();
}

}  // namespace gannet::bench
