// Scenario: one seed's run of a simulated cluster: topology, workload, faults, oracles.
//
// Everything that a scenario leaves open is drawn from its seed (swarm testing: each seed has its own selection of
// faults and its own strength of each). A run has two phases. In the first there are faults; whatever happens, nothing
// wrong may be seen. Then the faults stop, what is cut is mended, and within `settle` every node must get on, or, if it
// loses against the others for so long, within another `settle` in which those rest. In the end the whole data is read,
// the indexes are checked, and the history of all transactions goes to the checker of strict serializability.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "rdma/sim/faults.h"

namespace gannet::scenario {

inline constexpr uint64_t kWholeRun = 3'600'000'000'000;  // nanoseconds: longer than any run

struct ScenarioOptions {
  uint64_t seed = 1;
  std::string workload = {};           // registers, append or tpcc; empty: drawn
  int nodes = 0;                       // 0: drawn
  int workers_per_node = 0;            // 0: drawn
  int coroutines = 0;                  // 0: drawn; of each worker
  uint64_t keys = 0;                   // 0: drawn
  uint64_t faulty_nanos = 20'000'000;  // virtual time of the first phase
  uint64_t settle_nanos = 0;           // of the second; 0: what the faults can need to be over
  std::string nic = {};                // a profile; empty: drawn
  std::optional<bool> coherent = {};   // whether CPUs and NICs may lock the same words; unset: drawn
  std::string durability = {};         // none or sync; empty: drawn
  int power_cuts = -1;                 // of the whole cluster, in the first phase; -1: drawn. Only with sync
  // Of one node each, in the first phase; -1: drawn. With a log all are started again a while later, and recover.
  // Without, the others go on: a node with data stays dead.
  int deaths = -1;
  // Moments in the first phase when the faults pause, the clients end their transactions, and indexes, locks and memory
  // are checked (of TPC-C, its conditions too); -1: drawn.
  int checks = -1;
  std::optional<bool> client = {};  // the last node has no data: it dies, and another takes its place; unset: drawn
  // Options of the databases (txn/database.h) and of the workload; 0 or empty: drawn. Most seeds have values that are
  // harmless; the others have small ones, so that what waits, grows or expires does so within a short run.
  int server_threads = 0;
  std::string read_path = {};           // adaptive, one_sided or calls
  uint64_t call_timeout_nanos = 0;      // short: calls arrive late, debts outlive their transactions
  uint64_t durable_within_nanos = 0;    // short: a failing disk makes results Unknown
  uint64_t log_segment_bytes = 0;       // small: many segments begin
  uint64_t log_buffer_bytes = 0;        // small: commits wait for room
  uint64_t precedence_after_nanos = 0;  // short: transactions that lose ask to go first
  uint64_t precedence_limit_nanos = 0;
  uint64_t session_nanos = 0;  // a worker closes its session after this time and opens another; kWholeRun: never
  uint64_t row_words = 0;      // of the longest row of variable length, by registers
  std::optional<rdma::sim::Faults> faults = {};
  std::string elle_file = {};  // where the append workload's history goes, as EDN
  std::function<void(std::string_view line)> trace = nullptr;
  // Set by another thread or a signal handler: the run ends early, without a verdict. May be null. Changes nothing of a
  // run that is not stopped.
  const std::atomic<bool>* stop = nullptr;
};

// InvalidArgument names the field whose value cannot be run, and what can.
Status CheckScenario(const ScenarioOptions& options);

// A JSON object with the fields of ScenarioOptions by their names, faults as an object of theirs; what it does not
// name stays as it is in *options. InvalidArgument names the field.
Status ReadScenario(std::string_view json, ScenarioOptions* options);

// What RunScenario settled on: every field set. For replay lines.
ScenarioOptions Drawn(const ScenarioOptions& options);
std::string Describe(const ScenarioOptions& drawn);

struct ScenarioReport {
  uint64_t seed = 0;
  bool passed = false;     // nothing wrong was found
  bool stopped = false;    // by ScenarioOptions::stop: nothing is known; not in the JSON
  bool undecided = false;  // the history did not tell enough to prove it right or wrong; counts as passed
  std::string verdict;     // one line: "passed", or what is wrong
  std::string details;     // the anomalies in full, or empty
  uint64_t committed = 0;
  uint64_t failed = 0;   // certainly not applied
  uint64_t unknown = 0;  // perhaps applied
  uint64_t aborts = 0;   // attempts that met a conflict
  uint64_t power_cuts = 0;
  uint64_t deaths = 0;
  uint64_t checks = 0;  // before the one at the end
  uint64_t events = 0;
  uint64_t switches = 0;
  uint64_t preemptions = 0;
  uint64_t virtual_nanos = 0;
  uint64_t real_nanos = 0;
  uint64_t digest = 0;
  uint64_t checked_edges = 0;  // of the dependency graph
  // Sometimes marks that it reached (base/sometimes.h), and how often.
  std::map<std::string, uint64_t> marks;
};

// `options` must pass CheckScenario. Leaks what dead nodes leave; run each in a process of its own (sweep.h) if there
// are many.
ScenarioReport RunScenario(const ScenarioOptions& options);

}  // namespace gannet::scenario
