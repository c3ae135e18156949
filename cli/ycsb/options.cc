#include "cli/ycsb/options.h"

#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/cache_line.h"
#include "base/quantity.h"
#include "base/usable_memory.h"
#include "cli/common/parse.h"
#include "cli/serve/cluster_file.h"
#include "index/registry.h"
#include "log/file/simulated/timed_disk.h"
#include "rdma/shm/shm_fabric.h"
#include "rdma/sim/nic_profile.h"
#include "ycsb/key_space.h"
#include "ycsb/moving_part.h"

namespace gannet::cli {
namespace {

using bench::YcsbOptions;

// In addition to its threads, a machine has a channel for the grace period and one for training.
constexpr int kMaxThreadsPerMachine = rdma::kMaxShmChannelsPerNode - 4;
// Share of the machine's memory; the rest is for caches and everything else.
constexpr double kShareOfMemory = 0.9;

Status CheckNic(const YcsbOptions& o) {
  if (!o.simulated() && !o.spread) return Wrong("--no-spread: is for --fabric sim");
  if (!o.simulated()) return o.nic.empty() ? absl::OkStatus() : Wrong("--nic %s: is for --fabric sim", o.nic);
  if (rdma::sim::FindNicProfile(o.nic).has_value()) return absl::OkStatus();
  std::string names;
  for (const rdma::sim::NicProfile& profile : rdma::sim::NicProfiles()) names += " " + std::string(profile.name);
  return Wrong("--nic %s: must be one of%s", o.nic, names);
}

Status CheckLog(const YcsbOptions& o) {
  using Mode = ycsb::DurabilityMode;
  if (o.durability == Mode::kNone) {
    return o.disk.empty() ? absl::OkStatus() : Wrong("--disk: is for the log; give --durability, too, or leave it out");
  }
  const std::string flag = "--durability " + FormatDurability(o.durability);
  if (!o.simulated()) {
    return Wrong("%s: is for --fabric sim, which has a model of the disk; gannet tpcc measures the log on a real one",
                 flag);
  }
  if (o.inline_values) {
    return Wrong("%s: needs records, whose versions order the changes in the log; leave --inline out", flag);
  }
  if (o.paths.updates != ycsb::Path::kCall) {
    return Wrong("%s: the server logs what it writes; leave --updates one-sided out", flag);
  }
  if (log::FindDiskProfile(o.disk) != nullptr) return absl::OkStatus();
  std::string names;
  for (const log::DiskProfile& profile : log::DiskProfiles()) names += " " + std::string(profile.name);
  return Wrong("--disk %s: must be one of%s", o.disk, names);
}

Status CheckMemory(const YcsbOptions& o) {
  const uint64_t needed = bench::LoadBytes(o);
  const auto usable = static_cast<uint64_t>(static_cast<double>(UsableMemoryBytes()) * kShareOfMemory);
  if (needed <= usable) return absl::OkStatus();
  return Wrong("--keys %d: they need about %s, and this machine has %s; give fewer, or smaller --value-bytes", o.keys,
               FormatBytes(needed), FormatBytes(usable));
}

Status CheckPages(const YcsbOptions& o) {
  const char* flag = nullptr;
  if (o.leaf_admission_percent != YcsbOptions().leaf_admission_percent) flag = "--leaf-admission";
  if (o.one_cooling_latch) flag = "--one-cooling-latch";
  if (o.contended_lines) flag = "--contended-lines";
  if (flag != nullptr && o.index != index::IndexKind::kDex) {
    return Wrong("%s: is for the cache of --index dex; leave it out with --index %s", flag,
                 index::EntryOf(o.index).name);
  }
  if (o.contended_lines && !o.simulated()) {
    return Wrong("--contended-lines: lines of this machine's memory cost what they cost; give --fabric sim");
  }
  return absl::OkStatus();
}

Status CheckInline(const YcsbOptions& o) {
  const index::IndexKindEntry& kind = index::EntryOf(o.index);
  const StatusOr<index::IndexRights> rights = index::RightsFor(kind, o.index_rights);
  if (!rights.ok()) return Wrong("--index-rights %s: %s", index::NameOf(*o.index_rights), rights.status().message());
  if (o.keeping != index::shared_leaf::Keeping::kNone &&
      !(o.partitioned && o.inline_values && kind.traits.has_claims)) {
    return Wrong("--kept-leaves %s: needs --partitioned, --inline and --index %s",
                 bench::kKeepingNames[static_cast<size_t>(o.keeping)],
                 index::KindsWith(&index::IndexTraits::has_claims));
  }
  if (o.keeping != index::shared_leaf::Keeping::kNone && !o.clients_change_index()) {
    return Wrong("--kept-leaves %s: clients change the leaves that they keep; leave --index-rights %s out",
                 bench::kKeepingNames[static_cast<size_t>(o.keeping)], index::NameOf(*o.index_rights));
  }
  if (!o.inline_values) {
    if (o.paths.updates == ycsb::Path::kAdaptive) {
      return Wrong("--updates adaptive: records are locked in one way by all clients; give --inline, too");
    }
    if (o.paths.inserts == ycsb::Path::kCall) return absl::OkStatus();
    return Wrong("--insert-path %s: a client cannot make records; give --inline, too",
                 ycsb::kPathNames[static_cast<size_t>(o.paths.inserts)]);
  }
  if (!kind.traits.holds_values) {
    return Wrong("--inline: entries of %s cannot hold values; give --index %s", kind.name,
                 index::KindsWith(&index::IndexTraits::holds_values));
  }
  if (o.value_bytes != static_cast<int>(kWordBytes)) {
    return Wrong("--inline: an entry holds a value of %d bytes; leave --value-bytes out", kWordBytes);
  }
  if (o.locations) return Wrong("--inline: there are no records that --cache locations could remember");
  if (o.clients_change_index()) return absl::OkStatus();
  for (const auto& [flag, path] : {std::pair("--updates", o.paths.updates), {"--insert-path", o.paths.inserts}}) {
    if (path == ycsb::Path::kCall) continue;
    return Wrong("%s %s: only the server changes this index of kind %s; give --index %s%s", flag,
                 ycsb::kPathNames[static_cast<size_t>(path)], kind.name,
                 index::KindsWith(&index::IndexTraits::client_writes),
                 o.index_rights.has_value() ? " without --index-rights owner" : "");
  }
  return absl::OkStatus();
}

}  // namespace

Status Complete(bench::YcsbOptions* o) {
  bench::SetDefaults(o);
  GANNET_RETURN_IF_ERROR(CheckNic(*o));
  if (o->clients.threads > kMaxThreadsPerMachine) {
    return Wrong("--clients %dx%d: at most %d threads on a machine", o->clients.machines, o->clients.threads,
                 kMaxThreadsPerMachine);
  }
  const bool in_cluster = o->cluster_config.has_value();
  if (o->colocated && o->clients.threads + o->server_threads > kMaxThreadsPerMachine) {
    return Wrong("--colocated: at most %d threads on a machine, %d of clients and %d of the server",
                 kMaxThreadsPerMachine, o->clients.threads, o->server_threads);
  }
  if (!in_cluster && !o->colocated && o->clients.machines + o->servers > rdma::kMaxShmNodes) {
    return Wrong("--clients %dx%d: at most %d machines with %s", o->clients.machines, o->clients.threads,
                 rdma::kMaxShmNodes - o->servers, Count(static_cast<uint64_t>(o->servers), "server"));
  }
  if (o->insert_rate > 0 && !in_cluster && o->clients.machines < 2) {
    return Wrong("--insert-rate %d: needs a separate machine; give --clients 2x%d or more", o->insert_rate,
                 o->clients.threads);
  }
  if (o->insert_rate == 0 && o->insert_for < absl::InfiniteDuration()) {
    return Wrong("--insert-for: says how long --insert-rate inserts; give that, too, or leave --insert-for out");
  }
  if (o->move_after < absl::InfiniteDuration()) {
    const auto share = [o](ycsb::Kind kind) { return o->operations()[static_cast<size_t>(kind)]; };
    if (!o->partitioned || o->clients.machines < 2) {
      return Wrong("--move-after: keys move from machine to machine; give --partitioned and --clients 2x%d or more",
                   o->clients.threads);
    }
    if (o->coroutines > 1 || share(ycsb::Kind::kInsert) + share(ycsb::Kind::kScan) > 0) {
      return Wrong(
          "--move-after: clients may only read and update, one operation at a time; give --coroutines 1, and "
          "a --mix without inserts and scans");
    }
  }
  if (o->inserts == ycsb::InsertPlace::kRandom && (o->key_form != ycsb::KeyForm::kRandom || o->partitioned)) {
    return Wrong(
        "--inserts random: new keys lie anywhere between random ones; give --keyspace random, without "
        "--partitioned");
  }
  if (o->keys < static_cast<uint64_t>(o->servers)) {
    return Wrong("--keys %d: at least one for each of %s", o->keys, Count(static_cast<uint64_t>(o->servers), "server"));
  }
  if (const uint64_t least = ycsb::KeyPart::LeastKeys(o->servers, o->clients.machines);
      o->partitioned && o->keys < least) {
    return Wrong("--keys %d: with --partitioned each machine has a part of each server's; give %d or more", o->keys,
                 least);
  }
  if (const uint64_t least = ycsb::MovingPart::LeastKeys(o->servers, o->clients.machines);
      o->move_after < absl::InfiniteDuration() && o->keys < least) {
    return Wrong("--keys %d: with --move-after they move in slices; give %d or more", o->keys, least);
  }
  const index::IndexKindEntry& kind = index::EntryOf(o->index);
  if (!kind.traits.ordered && o->operations()[static_cast<size_t>(ycsb::Kind::kScan)] > 0) {
    const std::string scans = o->mix.has_value() ? "--mix" : absl::StrFormat("--workload %s", o->workload.name);
    return Wrong("--index %s: has no order, and %s scans; give --index %s", kind.name, scans,
                 index::KindsWith(&index::IndexTraits::ordered));
  }
  if (!kind.traits.learned && (o->locations || o->cache != index::XCacheMode::kWhole)) {
    return Wrong("--cache: says what a client of xstore keeps; for one of %s there is only --cache-bytes", kind.name);
  }
  if (!kind.traits.learned && !in_cluster && (o->sub_models > 0 || o->trainers > 1)) {
    return Wrong("%s: is for the models of --index %s; leave it out with --index %s",
                 o->sub_models > 0 ? "--sub-models" : "--trainers", index::KindsWith(&index::IndexTraits::learned),
                 kind.name);
  }
  if (const uint64_t memory = UsableMemoryBytes(); kind.make_pool != nullptr && o->cache_bytes > memory) {
    return Wrong("--cache-bytes %s: this machine has %s; give at most that", FormatBytes(o->cache_bytes),
                 FormatBytes(memory));
  }
  GANNET_RETURN_IF_ERROR(CheckPages(*o));
  GANNET_RETURN_IF_ERROR(CheckInline(*o));
  GANNET_RETURN_IF_ERROR(CheckLog(*o));
  if (const auto own = index::ReadOwnOptions(kind, o->index_options); !own.ok()) {
    return Wrong("--index-options %s: %s", o->index_options, own.status().message());
  }
  return in_cluster ? absl::OkStatus() : CheckMemory(*o);
}

Status ReadCluster(const YcsbFlags& flags, const std::string& flag_of_servers, const std::string& flag_of_one_process,
                   YcsbOptions* o) {
  if (flags.cluster.empty()) {
    if (!flags.wait.has_value()) return absl::OkStatus();
    return Wrong("--wait: is for servers that load; give --cluster, too, or leave it out");
  }
  if (!flag_of_servers.empty()) {
    return Wrong("%s: is for servers in this process; with --cluster the file says it, so leave %s out",
                 flag_of_servers, flag_of_servers);
  }
  if (!flag_of_one_process.empty()) {
    return Wrong("%s: needs servers in this process; leave %s out, or --cluster", flag_of_one_process,
                 flag_of_one_process);
  }
  if (o->clients.machines > 1) {
    return Wrong(
        "--clients %dx%d: this process is one client machine; give 1x%d, and start a process for each other one",
        o->clients.machines, o->clients.threads, o->clients.threads);
  }
  StatusOr<ClusterFile> file = ReadClusterFile(flags.cluster);
  if (!file.ok()) return file.status();
  if (!file->ycsb.has_value()) {
    return Wrong(
        "--cluster %s: its servers hold TPC-C ([tpcc]), not the keys of YCSB; run gannet tpcc run --cluster %s",
        flags.cluster, flags.cluster);
  }
  const cluster::Config& config = file->config;
  const YcsbSection& section = *file->ycsb;
  o->fabric = config.fabric == cluster::FabricKind::kVerbs ? bench::FabricKind::kVerbs : bench::FabricKind::kShm;
  o->servers = config.num_servers();
  o->server_threads = 1;
  for (const cluster::ServerConfig& server : config.servers) {
    o->server_threads = std::max(o->server_threads, server.server_threads);
  }
  o->index = section.options.index;
  if (section.options.index_rights == index::IndexRights::kOwnerOnly) o->index_rights = section.options.index_rights;
  o->keys = section.options.keys;
  o->key_form = section.options.key_form;
  o->value_bytes = static_cast<int>(section.options.value_bytes);
  o->fill_percent = section.fill_percent;
  o->sub_models = section.options.sub_models;
  o->updates = section.updates;
  o->wait = flags.wait.value_or(o->wait);
  o->cluster_config = config;
  return absl::OkStatus();
}

}  // namespace gannet::cli
