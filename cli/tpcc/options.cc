#include "cli/tpcc/options.h"

#include <algorithm>
#include <filesystem>

#include "base/quantity.h"
#include "base/usable_memory.h"
#include "cli/common/output_file.h"
#include "cli/common/parse.h"
#include "cli/tpcc/cluster.h"
#include "cli/tpcc/directory.h"
#include "rdma/shm/shm_fabric.h"
#include "tpcc/schema/keys.h"

namespace gannet::cli {
namespace {

// A node's channels serve its workers, the checker and the node's own upkeep.
constexpr int kMaxThreadsPerNode = rdma::kMaxShmChannelsPerNode - 28;
// The rest is for indexes' private memory, caches and everything else on the machine.
constexpr double kDefaultShareOfMemory = 0.75;

std::string Nodes(int n) {
  return Count(static_cast<uint64_t>(n), "node");
}

Status CompleteMemory(TpccOptions* o) {
  const uint64_t usable = UsableMemoryBytes();
  const auto nodes = static_cast<uint64_t>(o->nodes);
  if (o->memory_per_node == 0) {
    const auto share = static_cast<uint64_t>(static_cast<double>(usable) * kDefaultShareOfMemory) / nodes;
    o->memory_per_node = share & ~((uint64_t{2} << 20) - 1);  // whole huge pages
  } else if (o->memory_per_node > usable / nodes) {
    return Wrong("--memory-per-node %s: this machine has %s for %s; give at most %dM", FormatBytes(o->memory_per_node),
                 FormatBytes(usable), Nodes(o->nodes), (usable / nodes) >> 20);
  }
  const uint64_t most = nodes * o->memory_per_node / kLeastBytesPerWarehouse;
  if (static_cast<uint64_t>(o->warehouses) > most) {
    return Wrong("--warehouses %d: at most %d fit into %s on %s; give fewer, or more --memory-per-node", o->warehouses,
                 most, FormatBytes(o->memory_per_node), Nodes(o->nodes));
  }
  return absl::OkStatus();
}

// While a commit waits for the disk, its thread works on other transactions.
constexpr int kInFlightOfSync = 384;

// The memory that a run may insert into. If it is resident before, the kernel's search for pages is not measured. A run
// of less than a second measures nothing.
uint64_t PrefaultOfRun(const TpccOptions& o) {
  constexpr uint64_t kBytesPerThreadSecond = uint64_t{128} << 20;
  constexpr uint64_t kMost = uint64_t{4} << 30;
  const auto seconds = static_cast<uint64_t>(absl::ToInt64Seconds(o.run.duration));
  const auto threads = static_cast<uint64_t>(std::max(o.run.threads / o.nodes, 1));
  return std::min({seconds * threads * kBytesPerThreadSecond, kMost, o.memory_per_node / 2});
}

// The disk that `directory` is on, or will be on when it is made.
StatusOr<std::filesystem::space_info> DiskOf(const std::string& directory) {
  std::error_code error;
  std::filesystem::path existing = std::filesystem::absolute(directory, error);
  while (!std::filesystem::exists(existing, error) && existing.has_relative_path()) existing = existing.parent_path();
  const std::filesystem::space_info space = std::filesystem::space(existing, error);
  if (error) return absl::UnavailableError(error.message());
  return space;
}

// Largest amount that a run may write into its log, if the disk has enough space. A node cannot write more than this
// many bytes per second.
uint64_t LogOfRun(const TpccOptions& o) {
  constexpr double kBytesPerSecond = 320e6;
  constexpr uint64_t kMost = uint64_t{4} << 30;
  const StatusOr<std::filesystem::space_info> disk = DiskOf(o.database.directory);
  if (!disk.ok()) return 0;
  const double seconds = absl::ToDoubleSeconds(o.run.warmup + o.run.duration);
  const auto nodes = static_cast<uint64_t>(std::max(o.nodes, 1));
  return std::min({static_cast<uint64_t>(kBytesPerSecond * seconds), kMost, disk->available / 4}) / nodes;
}

// Values of the directory are the defaults, and flags must not contradict them.
Status CompleteFromDirectory(TpccOptions* o) {
  txn::DatabaseOptions& database = o->database;
  database.checkpoint_log_multiple = static_cast<double>(o->checkpoint_at);
  database.log_keep_preallocated = o->log_preallocate.has_value();
  const bool logs = o->verb == TpccVerb::kRun && database.durability != txn::DurabilityMode::kNone;
  o->log_preallocate = o->log_preallocate.value_or(logs ? LogOfRun(*o) : 0);
  database.log_preallocate_bytes = *o->log_preallocate;
  const std::string& directory = database.directory;
  const StatusOr<std::filesystem::space_info> disk = DiskOf(directory);
  if (disk.ok() && *o->log_preallocate > disk->capacity) {
    return Wrong("--log-preallocate %s: the disk of --dir %s has %s in all; give less",
                 FormatBytes(*o->log_preallocate), directory, FormatBytes(disk->capacity));
  }
  const bool waits = o->verb == TpccVerb::kRun && database.durability == txn::DurabilityMode::kSync;
  o->run.in_flight = o->in_flight.value_or(waits ? std::max(kInFlightOfSync, o->run.coroutines) : 0);
  const StatusOr<TpccDirectory> found = LookIntoTpccDirectory(directory);
  if (!found.ok()) return Wrong("--dir %s: %s", directory, found.status().message());
  if (found->nodes == 0) {
    if (database.create_if_missing) return absl::OkStatus();
    return o->verb == TpccVerb::kCheck
               ? Wrong("--dir %s: holds no database; check the path (gannet tpcc prepare --create makes one)",
                       directory)
               : Wrong("--dir %s: holds no database; check the path, or give --create to make one there", directory);
  }
  if (o->verb == TpccVerb::kCheck && !found->loaded) {
    return Wrong("--dir %s: has a load that did not finish; gannet tpcc prepare --dir %s loads it again", directory,
                 directory);
  }
  if (o->nodes != 0 && o->nodes != found->nodes) {
    return Wrong("--nodes %d: %s has the data of %s; leave --nodes out, or name another --dir", o->nodes, directory,
                 Nodes(found->nodes));
  }
  if (o->warehouses != 0 && o->warehouses != found->warehouses) {
    return Wrong("--warehouses %d: %s has %d; leave --warehouses out, or name another --dir", o->warehouses, directory,
                 found->warehouses);
  }
  if (o->ordered_index.has_value() && *o->ordered_index != found->ordered_index) {
    return Wrong("--ordered-index %s: %s has %s; leave --ordered-index out, or name another --dir",
                 index::EntryOf(*o->ordered_index).name, directory, index::EntryOf(found->ordered_index).name);
  }
  if (o->index_rights.has_value() && *o->index_rights != found->index_rights) {
    return Wrong("--index-rights %s: %s has %s; leave --index-rights out, or name another --dir",
                 index::NameOf(*o->index_rights), directory, index::NameOf(found->index_rights));
  }
  o->nodes = found->nodes;
  o->warehouses = found->warehouses;
  o->ordered_index = found->ordered_index;
  o->index_rights = found->index_rights;
  o->loaded = found->loaded;
  if (found->loaded) o->run.load_seed = found->seed;
  return absl::OkStatus();
}

// Says which flags of the run contradict each other.
Status CheckRun(const TpccOptions& o) {
  const tpcc::RunOptions& run = o.run;
  if (run.think_time && (run.coroutines != 0 || o.in_flight.value_or(0) != 0)) {
    const char* const flag = run.coroutines != 0 ? "--coroutines" : "--in-flight";
    return Wrong("--think-time: each terminal is a coroutine that waits for its own transactions; leave %s out", flag);
  }
  if (run.think_time && run.threads > o.warehouses) {
    return Wrong("--threads %d: with --think-time no two threads have the terminals of one warehouse; give %d or fewer",
                 run.threads, o.warehouses);
  }
  if (run.in_flight != 0 && run.in_flight < run.coroutines) {
    return Wrong(
        "--in-flight %d: is the number of transactions of all coroutines of a thread; give at least %d, as "
        "--coroutines has, or 0",
        run.in_flight, run.coroutines);
  }
  return absl::OkStatus();
}

Status CompleteFromCluster(TpccOptions* o) {
  if (const std::string& flag = o->flag_of_servers; !flag.empty()) {
    return Wrong("%s: is for data that this process has; with --cluster the servers have it, so leave %s out", flag,
                 flag);
  }
  StatusOr<ClusterFile> file = ReadClusterFile(o->cluster);
  if (!file.ok()) return file.status();
  if (!file->tpcc.has_value()) {
    return Wrong("--cluster %s: its servers hold the keys of YCSB ([ycsb]), not TPC-C; run gannet ycsb --cluster %s",
                 o->cluster, o->cluster);
  }
  o->cluster_file = *std::move(file);
  const cluster::Config& config = o->cluster_file->config;
  o->nodes = config.num_servers();
  o->warehouses = o->cluster_file->tpcc->warehouses;
  o->ordered_index = o->cluster_file->tpcc->ordered_index;
  o->index_rights = *index::RightsFor(index::EntryOf(*o->ordered_index), o->cluster_file->tpcc->index_rights);
  o->run.load_seed = o->cluster_file->tpcc->seed;
  o->prefault = 0;
  o->run.in_flight = o->in_flight.value_or(0);
  if (o->run.threads == 0) o->run.threads = 1;
  if (const int most = MostThreadsOfClient(config); o->run.threads > most) {
    return Wrong("--threads %d: with %d client_slots in %s a client has at most %d", o->run.threads,
                 config.client_slots, o->cluster, most);
  }
  return CheckRun(*o);
}

Status CheckStore(const std::string& store) {
  if (store.empty()) return absl::OkStatus();
  std::error_code error;
  if (std::filesystem::exists(store, error)) {
    return Wrong("--store %s: exists already; remove it or name another file", store);
  }
  Status usable = CheckMayMakeIn(std::filesystem::path(store).parent_path());
  if (usable.ok()) return usable;
  return Wrong("--store %s: %s; name a file in a directory that you may write to, such as /dev/shm", store,
               usable.message());
}

}  // namespace

std::string_view FabricOf(const TpccOptions& options) {
  const auto fabric =
      options.cluster_file.has_value() ? options.cluster_file->config.fabric : cluster::FabricKind::kShm;
  return cluster::kFabricNames[static_cast<size_t>(fabric)];
}

Status Complete(TpccOptions* o) {
  if (!o->cluster.empty()) return CompleteFromCluster(o);
  if (o->wait.has_value()) return Wrong("--wait: is for servers that load; give --cluster, too, or leave it out");
  o->run.load_seed = o->run.seed;
  if (!o->database.directory.empty()) {
    GANNET_RETURN_IF_ERROR(CompleteFromDirectory(o));
  } else if (!o->flag_of_directory.empty()) {
    return Wrong("%s: says how data is kept, but not where; give --dir, too", o->flag_of_directory);
  }
  if (o->nodes == 0) o->nodes = 1;
  if (o->warehouses == 0) o->warehouses = o->nodes;
  o->ordered_index = o->ordered_index.value_or(index::IndexKind::kXStore);
  const StatusOr<index::IndexRights> rights = index::RightsFor(index::EntryOf(*o->ordered_index), o->index_rights);
  if (!rights.ok()) return Wrong("--index-rights %s: %s", index::NameOf(*o->index_rights), rights.status().message());
  o->index_rights = *rights;
  if (o->run.threads == 0) o->run.threads = o->nodes;
  if (o->warehouses < o->nodes) {
    return Wrong("--warehouses %d: each of the %d nodes needs at least one; give %d or more, or fewer --nodes",
                 o->warehouses, o->nodes, o->nodes);
  }
  if (o->run.threads < o->nodes) {
    return Wrong("--threads %d: each of the %d nodes needs at least one; give %d or more, or fewer --nodes",
                 o->run.threads, o->nodes, o->nodes);
  }
  if (o->run.threads > o->nodes * kMaxThreadsPerNode) {
    return Wrong("--threads %d: a node has at most %d; give %d or fewer, or more --nodes", o->run.threads,
                 kMaxThreadsPerNode, o->nodes * kMaxThreadsPerNode);
  }
  GANNET_RETURN_IF_ERROR(CheckRun(*o));
  GANNET_RETURN_IF_ERROR(CheckStore(o->store));
  GANNET_RETURN_IF_ERROR(CompleteMemory(o));
  o->prefault = o->prefault.value_or(o->verb == TpccVerb::kRun && !o->run.think_time ? PrefaultOfRun(*o) : 0);
  if (*o->prefault > o->memory_per_node) {
    return Wrong("--prefault %s: a node has %s; give less, or more --memory-per-node", FormatBytes(*o->prefault),
                 FormatBytes(o->memory_per_node));
  }
  return absl::OkStatus();
}

}  // namespace gannet::cli
