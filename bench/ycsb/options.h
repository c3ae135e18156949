// The options of a run of the YCSB bench: operations, data and machines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "base/status.h"
#include "cluster/config/config.h"
#include "index/shared_leaf/claim/claim_holder.h"
#include "ycsb/client.h"
#include "ycsb/cluster.h"
#include "ycsb/connection.h"
#include "ycsb/workload.h"
#include "ycsb/zipf.h"

namespace gannet::bench {

enum class FabricKind : uint8_t { kShm, kSim, kVerbs };  // kVerbs: only by a cluster file
inline constexpr std::string_view kFabricNames[] = {"shm", "sim", "verbs"};
inline constexpr std::string_view kKeepingNames[] = {"none", "write-through", "write-back"};

// The value of `clients`, such as 16x24.
struct ClientThreads {
  int machines = 0;
  int threads = 0;  // of each
};

struct YcsbOptions {
  // The operations.
  ycsb::Workload workload = *ycsb::FindWorkload("c");
  std::optional<ycsb::Mix> mix;                    // instead of the workload's
  std::optional<ycsb::Distribution> distribution;  // instead of the workload's
  double theta = ycsb::kYcsbTheta;                 // skew of zipfian and latest
  ycsb::InsertPlace inserts = ycsb::InsertPlace::kSpread;
  uint64_t insert_rate = 0;  // of one more machine; 0: there is none
  absl::Duration insert_for = absl::InfiniteDuration();
  absl::Duration move_after = absl::InfiniteDuration();  // ycsb::RunOptions::move_after
  ycsb::Paths paths;
  std::optional<ycsb::Path> updates;
  std::optional<ycsb::Path> inserts_by;
  std::optional<absl::Duration> warmup;
  std::optional<absl::Duration> duration;
  std::optional<absl::Duration> interval;  // of the report's timeline
  uint64_t seed = 1;

  // The data.
  ycsb::IndexKind index = ycsb::IndexKind::kXStore;
  std::string index_options;                      // of this kind only (index/registry.h, read_options)
  std::optional<ycsb::IndexRights> index_rights;  // ClusterOptions::index_rights; none: the most that the kind allows
  uint64_t keys = 1'000'000;
  ycsb::KeyForm key_form = ycsb::KeyForm::kLinear;
  int value_bytes = static_cast<int>(ycsb::kMinValueBytes);
  bool inline_values = false;  // ClusterOptions::values_in_entries
  int fill_percent = 50;
  uint64_t sub_models = 0;
  int trainers = 1;                                               // of each server's XStore
  ycsb::DurabilityMode durability = ycsb::DurabilityMode::kNone;  // of writes by calls; simulations only

  // The machines.
  FabricKind fabric = FabricKind::kShm;
  ClientThreads clients;
  int coroutines = 0;  // 0: SetDefaults() chooses
  int servers = 1;
  int server_threads = 0;    // 0: SetDefaults() chooses
  bool colocated = false;    // each client machine is a server, too: SetDefaults() sets `servers`
  bool partitioned = false;  // ClusterOptions::partitioned
  index::shared_leaf::Keeping keeping = index::shared_leaf::Keeping::kNone;  // ClusterOptions::keeping
  std::string nic;                                                           // empty: SetDefaults() chooses
  std::string disk;            // of each server's log (log/file/simulated/timed_disk.h); empty: SetDefaults() chooses
  bool version_reads = false;  // clients READ versions, too (version_reads.h); of simulations
  bool spread = true;          // of round trips on a simulated rack (rdma/sim/spread.h)
  index::XCacheMode cache = index::XCacheMode::kWhole;
  bool locations = false;           // xstore: also a cache of record addresses in front of the model
  uint64_t cache_bytes = 0;         // 0: the default of the index
  int leaf_admission_percent = 10;  // CacheOptions::pages, as the next
  bool one_cooling_latch = false;
  bool contended_lines = false;  // of simulations: a line that threads change in turn costs time (Cost::kTakenLine)

  // The cluster whose servers are other processes. This process is one client machine of it, and the options above
  // describe the servers' data. None: servers and clients are in this process.
  std::optional<cluster::Config> cluster_config;
  absl::Duration wait = absl::Minutes(1);  // until the servers of `cluster_config` have loaded

  ycsb::Distribution keys_drawn() const { return distribution.value_or(workload.distribution); }
  const ycsb::Mix& operations() const { return mix.has_value() ? *mix : workload.mix; }
  ycsb::ClusterOptions cluster_options() const;
  bool clients_change_index() const { return cluster_options().index_traits().client_writes; }
  bool simulated() const { return fabric == FabricKind::kSim; }
};

// Fills in the defaults that depend on other options. Calling it again changes nothing.
void SetDefaults(YcsbOptions* options);

// Registered memory of all servers together after the load, and the memory that the load takes in addition.
uint64_t LoadBytes(const YcsbOptions& options);
// Size of a node's registered memory. This is address space: memory is taken when it is used.
uint64_t BytesPerNode(const YcsbOptions& options);

}  // namespace gannet::bench
