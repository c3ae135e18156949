#include "bench/ycsb/options.h"

#include "log/file/simulated/timed_disk.h"
#include "ycsb/server.h"

namespace gannet::bench {
namespace {

ycsb::ServerOptions ServerOf(const YcsbOptions& o) {
  return {.index = o.index,
          .expected_keys = o.keys / static_cast<uint64_t>(o.servers) + 1,
          .value_bytes = static_cast<size_t>(o.value_bytes),
          .values_in_entries = o.inline_values,
          .fill = o.fill_percent / 100.0};
}

}  // namespace

void SetDefaults(YcsbOptions* o) {
  const bool sim = o->simulated();
  if (o->clients.machines == 0) o->clients = sim ? ClientThreads{15, 24} : ClientThreads{1, 2};
  if (o->coroutines == 0) o->coroutines = sim ? 8 : 1;
  if (o->server_threads == 0) o->server_threads = sim ? 24 : 1;
  if (sim && o->nic.empty()) o->nic = "cx4-100g";
  if (o->durability != ycsb::DurabilityMode::kNone && o->disk.empty()) o->disk = log::DiskProfiles()[0].name;
  o->duration = o->duration.value_or(sim ? absl::Milliseconds(10) : absl::Seconds(10));
  o->warmup = o->warmup.value_or(sim ? absl::Milliseconds(2) : absl::Seconds(1));
  o->interval = o->interval.value_or(sim ? *o->duration / 5 : absl::Seconds(1));
  if (o->colocated) o->servers = o->clients.machines;
  // Clients change what they can change.
  const bool by_verbs = o->inline_values && o->clients_change_index();
  const ycsb::Path changes = by_verbs ? ycsb::Path::kOneSided : ycsb::Path::kCall;
  o->paths.updates = o->updates.value_or(changes);
  o->paths.inserts = o->inserts_by.value_or(changes);
}

ycsb::ClusterOptions YcsbOptions::cluster_options() const {
  return {.servers = servers,
          .server_threads = server_threads,
          .machines = clients.machines,
          .colocated = colocated,
          .partitioned = partitioned,
          .keeping = keeping,
          .key_form = key_form,
          .keys = keys,
          .index = index,
          .index_options = index_options,
          .index_rights = index_rights.value_or(index::IndexRights::kClients),
          .value_bytes = static_cast<size_t>(value_bytes),
          .values_in_entries = inline_values,
          .fill = fill_percent / 100.0,
          .sub_models = static_cast<uint32_t>(sub_models),
          .trainers = trainers,
          .train_models = paths.reads != ycsb::Path::kCall,
          .durability = durability};
}

uint64_t LoadBytes(const YcsbOptions& o) {
  const ycsb::ServerOptions server = ServerOf(o);
  return ycsb::BytesNeeded(server) * static_cast<uint64_t>(o.servers) + ycsb::kLoadBytesPerKey * server.expected_keys;
}

uint64_t BytesPerNode(const YcsbOptions& o) {
  // The memory is twice the loaded data, because of inserts, and some more.
  return (2 * ycsb::BytesNeeded(ServerOf(o)) + (uint64_t{4} << 30)) & ~((uint64_t{2} << 20) - 1);
}

}  // namespace gannet::bench
