#include "cli/ycsb_options.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "cli/machine_memory.h"
#include "cli/parse.h"
#include "rdma/shm/shm_fabric.h"
#include "rdma/sim/nic_profile.h"

namespace gannet::cli {
namespace {

// Beside its threads, a machine has a channel for the grace period and one for training.
constexpr int kMaxThreadsPerMachine = rdma::kMaxShmChannelsPerNode - 4;
// Of the machine's memory: the rest is for caches, and for everything else.
constexpr double kShareOfMemory = 0.9;

template <class... Arguments>
Status Wrong(const absl::FormatSpec<Arguments...>& format, const Arguments&... arguments) {
  return absl::InvalidArgumentError(absl::StrFormat(format, arguments...));
}

void ChooseDefaults(YcsbOptions* o) {
  const bool sim = o->simulated();
  if (o->clients.machines == 0) o->clients = sim ? ClientThreads{15, 24} : ClientThreads{1, 2};
  if (o->coroutines == 0) o->coroutines = sim ? 8 : 1;
  if (o->server_threads == 0) o->server_threads = sim ? 24 : 1;
  if (sim && o->nic.empty()) o->nic = "cx4-100g";
  o->duration = o->duration.value_or(sim ? absl::Milliseconds(10) : absl::Seconds(10));
  o->warmup = o->warmup.value_or(sim ? absl::Milliseconds(2) : absl::Seconds(1));
  o->interval = o->interval.value_or(sim ? *o->duration / 5 : absl::Seconds(1));
  if (o->updates.has_value()) {
    o->paths.updates = *o->updates;
  } else {
    o->paths.updates = ycsb::Path::kCall;
  }
}

Status CheckNic(const YcsbOptions& o) {
  if (!o.simulated()) return o.nic.empty() ? absl::OkStatus() : Wrong("--nic %s: is for --fabric sim", o.nic);
  if (rdma::sim::FindNicProfile(o.nic).has_value()) return absl::OkStatus();
  std::string names;
  for (const rdma::sim::NicProfile& profile : rdma::sim::NicProfiles()) names += " " + std::string(profile.name);
  return Wrong("--nic %s: must be one of%s", o.nic, names);
}

Status CheckMemory(YcsbOptions* o) {
  const ycsb::ServerOptions server = {.index = o->index,
                                      .expected_keys = o->keys / static_cast<uint64_t>(o->servers) + 1,
                                      .value_bytes = static_cast<size_t>(o->value_bytes),
                                      .fill = o->fill_percent / 100.0};
  const uint64_t loaded = ycsb::BytesNeeded(server);
  const uint64_t needed = loaded * static_cast<uint64_t>(o->servers) + ycsb::kLoadBytesPerKey * server.expected_keys;
  const auto usable = static_cast<uint64_t>(static_cast<double>(UsableMemoryBytes()) * kShareOfMemory);
  if (needed > usable) {
    return Wrong("--keys %d: they need about %s, and this machine has %s; give fewer, or smaller --value-bytes",
                 o->keys, FormatBytes(needed), FormatBytes(usable));
  }
  // Address space, not memory: as much again for inserts, and more.
  o->bytes_per_node = (2 * loaded + (uint64_t{4} << 30)) & ~((uint64_t{2} << 20) - 1);
  return absl::OkStatus();
}

}  // namespace

Status Complete(YcsbOptions* o) {
  ChooseDefaults(o);
  GANNET_RETURN_IF_ERROR(CheckNic(*o));
  if (o->clients.threads > kMaxThreadsPerMachine) {
    return Wrong("--clients %dx%d: at most %d threads on a machine", o->clients.machines, o->clients.threads,
                 kMaxThreadsPerMachine);
  }
  if (o->clients.machines + o->servers > rdma::kMaxShmNodes) {
    return Wrong("--clients %dx%d: at most %d machines beside %d servers", o->clients.machines, o->clients.threads,
                 rdma::kMaxShmNodes - o->servers, o->servers);
  }
  if (o->insert_rate > 0 && o->clients.machines < 2) {
    return Wrong("--insert-rate %d: takes a machine of its own; give --clients 2x%d or more", o->insert_rate,
                 o->clients.threads);
  }
  if (o->insert_rate == 0 && o->insert_for < absl::InfiniteDuration()) {
    return Wrong("--insert-for: says how long --insert-rate inserts; give that, too, or leave --insert-for out");
  }
  if (o->keys < static_cast<uint64_t>(o->servers)) {
    return Wrong("--keys %d: at least one for each of the %d servers", o->keys, o->servers);
  }
  const index::IndexKindEntry& kind = index::EntryOf(o->index);
  if (!kind.traits.ordered && o->operations()[static_cast<size_t>(ycsb::Kind::kScan)] > 0) {
    const std::string scans = o->mix.has_value() ? "--mix" : absl::StrFormat("--workload %c", o->workload.letter);
    return Wrong("--index %s: has no order, and %s scans; give --index xstore", kind.name, scans);
  }
  if (!kind.traits.learned && (o->locations || o->cache != index::XCacheMode::kWhole)) {
    return Wrong("--cache: says what a client of xstore keeps; one of %s has no models (but --cache-bytes)", kind.name);
  }
  return CheckMemory(o);
}

}  // namespace gannet::cli
