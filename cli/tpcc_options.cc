#include "cli/tpcc_options.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_format.h"
#include "cli/parse.h"
#include "rdma/shm/shm_fabric.h"
#include "tpcc/keys.h"

namespace gannet::cli {
namespace {

// A node's channels serve its workers, the checker and the node's own upkeep.
constexpr int kMaxThreadsPerNode = rdma::kMaxShmChannelsPerNode - 28;
// The rest is for indexes' private memory, caches and everything else on the machine.
constexpr double kDefaultShareOfMemory = 0.75;

template <class... Arguments>
Status Wrong(const absl::FormatSpec<Arguments...>& format, const Arguments&... arguments) {
  return absl::InvalidArgumentError(absl::StrFormat(format, arguments...));
}

std::string Nodes(int n) {
  return n == 1 ? "1 node" : absl::StrFormat("%d nodes", n);
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

}  // namespace

uint64_t UsableMemoryBytes() {
  uint64_t bytes = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  uint64_t limit = 0;
  // "max" if there is no limit: then nothing is read.
  if (std::ifstream group("/sys/fs/cgroup/memory.max"); group >> limit) bytes = std::min(bytes, limit);
  return bytes;
}

Status Complete(TpccOptions* o) {
  if (o->warehouses == 0) o->warehouses = o->nodes;
  if (o->threads == 0) o->threads = o->nodes;
  if (o->warehouses < o->nodes) {
    return Wrong("--warehouses %d: each of the %d nodes needs at least one; give %d or more, or fewer --nodes",
                 o->warehouses, o->nodes, o->nodes);
  }
  if (o->threads < o->nodes) {
    return Wrong("--threads %d: each of the %d nodes needs at least one; give %d or more, or fewer --nodes", o->threads,
                 o->nodes, o->nodes);
  }
  if (o->threads > o->nodes * kMaxThreadsPerNode) {
    return Wrong("--threads %d: a node has at most %d; give %d or fewer, or more --nodes", o->threads,
                 kMaxThreadsPerNode, o->nodes * kMaxThreadsPerNode);
  }
  if (!o->store.empty() && std::filesystem::exists(o->store)) {
    return Wrong("--store %s: exists already; remove it or name another file", o->store);
  }
  return CompleteMemory(o);
}

}  // namespace gannet::cli
