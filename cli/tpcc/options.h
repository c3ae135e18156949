// The flags of `gannet tpcc prepare|run|check`, as values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/status.h"
#include "cli/report/report_files.h"
#include "cli/serve/cluster_file.h"
#include "index/registry.h"
#include "txn/database.h"
#include "txn/store/read_path.h"

namespace gannet::cli {

enum class TpccVerb { kPrepare, kRun, kCheck };

struct TpccOptions {
  TpccVerb verb = TpccVerb::kRun;

  // The data and its place.
  int nodes = 0;                                  // 0: as the directory has, or 1
  int warehouses = 0;                             // 0: as the directory has, or one per node
  std::optional<index::IndexKind> ordered_index;  // of the ordered tables; none: as the directory has, or XStore
  // Rights of the ordered tables; none: as the directory has, or the most that their kind allows.
  std::optional<index::IndexRights> index_rights;
  uint64_t memory_per_node = 0;      // bytes; 0: Complete() takes an equal share of most of the machine's memory
  std::string store;                 // a memory file for the nodes' memory; empty: anonymous memory
  std::optional<uint64_t> prefault;  // bytes per node that are made resident before the run
  bool adversarial = false;
  uint64_t seed = 1;

  // The cluster file of the processes that have the data. This process then only runs transactions, and does not choose
  // the data.
  std::string cluster;
  std::optional<ClusterFile> cluster_file;  // Complete() reads it
  std::optional<absl::Duration> wait;       // how long to wait until the servers have loaded; none: a minute

  // The directory of the data. Without one the data is not kept, and the options below must not be set.
  std::string directory;
  bool create = false;  // create a database in the directory if there is none
  std::optional<txn::DurabilityMode> durability;
  std::optional<txn::LogMedium> medium;
  std::optional<absl::Duration> group_commit;
  std::optional<absl::Duration> checkpoint_every;  // 0: never
  std::optional<int64_t> checkpoint_at;            // times the bytes of the rows; 0: never because of the log's size
  std::optional<uint64_t> log_preallocate;         // bytes per node
  bool keep_preallocated = false;                  // set by Complete(): log_preallocate was given
  // Set by Complete(): the directory has been loaded before, with this seed.
  bool loaded = false;
  uint64_t load_seed = 1;

  // The run.
  int threads = 0;               // over all nodes; 0: one per node
  int coroutines = 0;            // per thread; 0: the driver chooses
  std::optional<int> in_flight;  // per thread; 0: a coroutine waits for its own commits
  absl::Duration warmup = absl::Seconds(2);
  absl::Duration duration = absl::Seconds(30);
  absl::Duration interval = absl::Seconds(1);
  std::array<int, 5> mix = {45, 43, 4, 4, 4};
  bool think_time = false;
  txn::ReadPathPolicy read_path = txn::ReadPathPolicy::kAdaptive;

  ReportFlags report;
};

// Fills in the defaults that depend on other flags or on the machine, and says which flags contradict each other or the
// machine: InvalidArgument with "--flag value: what to do".
Status Complete(TpccOptions* options);

// "shm" or "verbs".
std::string_view FabricOf(const TpccOptions& options);

// Loading needs at least this much memory per warehouse. (Only for refusals that are certainly right; the real need is
// larger.)
inline constexpr uint64_t kLeastBytesPerWarehouse = uint64_t{60} << 20;

}  // namespace gannet::cli
