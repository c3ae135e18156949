// The flags of `gannet tpcc prepare|run|check`, as values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/status.h"
#include "cli/cluster_file.h"
#include "txn/database.h"
#include "txn/read_path.h"

namespace gannet::cli {

enum class TpccVerb { kPrepare, kRun, kCheck };

struct TpccOptions {
  TpccVerb verb = TpccVerb::kRun;

  // What is loaded, and where.
  int nodes = 0;                     // 0: as the directory has, or 1
  int warehouses = 0;                // 0: as the directory has, or one per node
  uint64_t memory_per_node = 0;      // bytes; 0: Complete() takes an equal share of most of the machine's memory
  std::string store;                 // a memory file for the nodes' memory; empty: anonymous memory
  std::optional<uint64_t> prefault;  // bytes per node that are made resident before the run
  bool adversarial = false;
  uint64_t seed = 1;

  // The processes that have it already: this one only runs transactions, and what is loaded is not its to say.
  std::string cluster;
  std::optional<ClusterFile> cluster_file;  // Complete() reads it
  std::optional<absl::Duration> wait;       // until the servers have loaded; none: a minute

  // Where it is kept. Without a directory it is gone at the end, and the others must not be given.
  std::string directory;
  bool create = false;  // a database in the directory, if there is none
  std::optional<txn::DurabilityMode> durability;
  std::optional<txn::LogMedium> medium;
  std::optional<absl::Duration> group_commit;
  std::optional<absl::Duration> checkpoint_every;  // 0: never
  std::optional<uint64_t> log_preallocate;         // bytes per node
  // Complete() looks: the directory has been loaded before, by this seed.
  bool loaded = false;
  uint64_t load_seed = 1;

  // What is run.
  int threads = 0;               // over all nodes; 0: one per node
  int coroutines = 0;            // per thread; 0: the driver chooses
  std::optional<int> in_flight;  // per thread; 0: a coroutine waits for its own commits
  absl::Duration warmup = absl::Seconds(2);
  absl::Duration duration = absl::Seconds(30);
  absl::Duration interval = absl::Seconds(1);
  std::array<int, 5> mix = {45, 43, 4, 4, 4};
  bool think_time = false;
  txn::ReadPathPolicy read_path = txn::ReadPathPolicy::kAdaptive;

  std::string json;  // where to write the report; empty: nowhere
};

// Fills in the defaults that depend on other flags or on the machine, and says which flags contradict each other or the
// machine: InvalidArgument with "--flag value: what to do".
Status Complete(TpccOptions* options);

// "shm" or "verbs".
std::string_view FabricOf(const TpccOptions& options);

// Loading touches at least this much memory per warehouse (for a refusal that is surely right; the real need is more).
inline constexpr uint64_t kLeastBytesPerWarehouse = uint64_t{60} << 20;

}  // namespace gannet::cli
