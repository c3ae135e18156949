// Scenario: one seed's run of a simulated cluster: topology, workload, faults, checkers.
//
// Everything that a scenario leaves open is drawn from its seed (swarm testing: each seed has its own selection of
// faults and its own strength of each). A run has two phases. In the first there are faults, and nothing wrong may be
// seen. Then the faults stop, links are mended, and within `settle` every node must make progress. A node that loses
// conflicts for that long gets another `settle`, in which the other nodes begin nothing. At the end all data is read,
// the indexes are checked, and the history of all transactions goes to the checker of strict serializability.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "lab/scenario/options/options.h"

namespace gannet::scenario {

struct ScenarioReport {
  uint64_t seed = 0;
  bool passed = false;     // nothing wrong was found
  bool stopped = false;    // by ScenarioOptions::stop: without a result; not in the JSON
  bool undecided = false;  // the history did not tell enough for a proof; counts as passed
  std::string verdict;     // one line: "passed", or what is wrong
  std::string details;     // the anomalies in full; may be empty
  uint64_t committed = 0;
  uint64_t failed = 0;   // certainly not applied
  uint64_t unknown = 0;  // may have been applied
  uint64_t aborts = 0;   // attempts that met a conflict
  uint64_t power_cuts = 0;
  uint64_t deaths = 0;
  uint64_t checks = 0;  // without the one at the end
  uint64_t events = 0;
  uint64_t switches = 0;
  uint64_t preemptions = 0;
  uint64_t virtual_nanos = 0;
  uint64_t real_nanos = 0;
  uint64_t digest = 0;
  uint64_t checked_edges = 0;  // of the dependency graph
  // How often the run reached each Sometimes mark (base/sometimes.h).
  std::map<std::string, uint64_t> marks;
};

// `options` must pass CheckScenario. Leaks the objects of dead nodes; for many scenarios, run each in a process of its
// own (sweep.h).
ScenarioReport RunScenario(const ScenarioOptions& options);

}  // namespace gannet::scenario
