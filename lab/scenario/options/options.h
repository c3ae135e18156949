// The options of a scenario's run, and how those that are left open are drawn from its seed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "rdma/sim/faults.h"

namespace gannet::scenario {

inline constexpr char kTpccWorkload[] = "tpcc";
// The names of all workloads.
const std::vector<std::string>& WorkloadNames();

// With at least this many keys a workload fills and empties whole ranges of keys, so that indexes grow and shrink.
inline constexpr uint64_t kManyKeys = 1024;

inline constexpr uint64_t kWholeRun = 3'600'000'000'000;  // nanoseconds: longer than any run

struct ScenarioOptions {
  uint64_t seed = 1;
  std::string workload = {};           // registers, rectangles, append or tpcc; empty: drawn
  int nodes = 0;                       // 0: drawn
  int workers_per_node = 0;            // 0: drawn
  int coroutines = 0;                  // per worker; 0: drawn
  uint64_t keys = 0;                   // 0: drawn
  uint64_t faulty_nanos = 20'000'000;  // virtual time of the first phase
  uint64_t settle_nanos = 0;           // of the second; 0: long enough for the effects of the faults to end
  std::string nic = {};                // a profile; empty: drawn
  std::optional<bool> coherent = {};   // whether CPUs and NICs may lock the same words; unset: drawn
  std::string durability = {};         // none or sync; empty: drawn
  int power_cuts = -1;                 // of the whole cluster, in the first phase; -1: drawn. Only with sync
  // Deaths of one node each, in the first phase; -1: drawn. With a log all nodes are started again a while later, and
  // recover. Without a log the others continue: a node with data stays dead.
  int deaths = -1;
  // Moments in the first phase when the faults pause, the clients finish their transactions, and indexes, locks and
  // memory are checked (for TPC-C, its conditions, too); -1: drawn.
  int checks = -1;
  std::optional<bool> client = {};  // the last node has no data: when it dies, another takes its place; unset: drawn
  // Options of the databases (txn/database.h) and of the workload; 0 or empty: drawn. Most seeds have values that are
  // harmless; the others have small ones, so that waits, growth and expiry happen within a short run.
  int server_threads = 0;
  std::string read_path = {};           // adaptive, one_sided or calls
  uint64_t call_timeout_nanos = 0;      // short: calls arrive late, pending operations outlive their transactions
  uint64_t durable_within_nanos = 0;    // short: a failing disk makes results Unknown
  uint64_t log_segment_bytes = 0;       // small: many segments begin
  uint64_t log_buffer_bytes = 0;        // small: commits wait for room
  uint64_t precedence_after_nanos = 0;  // short: transactions that lose ask to go first
  uint64_t precedence_limit_nanos = 0;
  uint64_t session_nanos = 0;  // a worker closes its session after this time and opens another; kWholeRun: never
  // After an error a worker's thread rests this long, if none of its transactions is open; 1: it does not.
  uint64_t rest_nanos = 0;
  uint64_t row_words = 0;          // length of the longest row of variable length, in registers
  std::string index_options = {};  // TableOptions::index_options of the table of rectangles; empty: drawn
  std::string ordered_index = {};  // kind of ordered tables, as Fields has them; empty: drawn
  std::string index_rights = {};   // who changes their indexes, owner or clients; of xstore owner; empty: drawn
  std::optional<rdma::sim::Faults> faults = {};
  std::string elle_file = {};  // file for the append workload's history, as EDN
  std::function<void(std::string_view line)> trace = nullptr;
  // Set by another thread or a signal handler to end the run early, without a verdict. May be null. A run that is not
  // stopped is unaffected.
  const std::atomic<bool>* stop = nullptr;
};

// InvalidArgument names the field with an invalid value, and its valid values.
Status CheckScenario(const ScenarioOptions& options);

// The options with every open field drawn, as RunScenario uses them. For replay lines.
ScenarioOptions Drawn(const ScenarioOptions& options);
std::string Describe(const ScenarioOptions& drawn);

}  // namespace gannet::scenario
