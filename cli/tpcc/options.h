// The flags of `gannet tpcc prepare|run|check`, as values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "base/status.h"
#include "cli/report/report_files.h"
#include "cli/serve/cluster_file.h"
#include "index/registry.h"
#include "tpcc/driver.h"
#include "txn/database.h"

namespace gannet::cli {

enum class TpccVerb { kPrepare, kRun, kCheck };

struct TpccOptions {
  TpccOptions() { run.threads = 0; }

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

  // The cluster file of the processes that have the data. This process then only runs transactions, and does not choose
  // the data.
  std::string cluster;
  std::optional<ClusterFile> cluster_file;  // Complete() reads it
  std::optional<absl::Duration> wait;       // how long to wait until the servers have loaded; none: a minute

  // How the databases read, and how they keep the data, if there is a directory.
  txn::DatabaseOptions database;
  int64_t checkpoint_at = 2;                // database.checkpoint_log_multiple
  std::optional<uint64_t> log_preallocate;  // database.log_preallocate_bytes; none: Complete() chooses
  bool loaded = false;                      // set by Complete(): the directory has been loaded before

  // The run. Complete() sets `threads`, if it is 0, to one per node, and `load_seed`.
  tpcc::RunOptions run;
  std::optional<int> in_flight;  // run.in_flight; none: Complete() chooses

  // The first flags on the command line with these marks (cli/report/bench_flags.h).
  std::string flag_of_servers;
  std::string flag_of_directory;

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
