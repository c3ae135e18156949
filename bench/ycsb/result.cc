#include "bench/ycsb/result.h"

#include <algorithm>
#include <vector>

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

void AddLog(log::Log* log, std::optional<log::LogStatistics>* sum) {
  if (log == nullptr) return;
  const log::LogStatistics more = log->statistics();
  if (!sum->has_value()) sum->emplace();
  (*sum)->transactions += more.transactions;
  (*sum)->changes += more.changes;
  (*sum)->payload_bytes += more.payload_bytes;
  (*sum)->record_bytes += more.record_bytes;
  (*sum)->disk_bytes += more.disk_bytes;
  (*sum)->batches += more.batches;
  (*sum)->segments += more.segments;
  (*sum)->failures += more.failures;
}

}  // namespace

Status MeasureStore(ycsb::Cluster* cluster, YcsbResult* result) {
  const StatusOr<std::vector<ycsb::ServerReport>> reports = cluster->Report();
  if (!reports.ok()) return reports.status();
  for (const ycsb::ServerReport& server : *reports) {
    result->index.keys += server.index.keys;
    result->index.registered_bytes += server.index.registered_bytes;
    result->index.private_bytes += server.index.private_bytes;
    result->index.nodes += server.index.nodes;
    result->index.height = std::max(result->index.height, server.index.height);
    result->memory.capacity_bytes += server.memory.capacity_bytes;
    result->memory.carved_bytes += server.memory.carved_bytes;
    result->memory.free_bytes += server.memory.free_bytes;
    if (!server.model.has_value()) continue;
    if (!result->model.has_value()) result->model.emplace();
    AddModel(*server.model, static_cast<int>(reports->size()), &*result->model);
  }
  if (cluster->has_servers()) {
    for (int i = 0; i < cluster->options().servers; ++i) AddLog(cluster->server(i).log(), &result->log);
  }
  result->resident_bytes = ResidentBytes();
  return absl::OkStatus();
}

}  // namespace gannet::bench
