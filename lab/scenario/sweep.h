// Runs many scenarios, one per seed, each in a child process. So leaked objects of dead nodes end with the process, a
// broken invariant stops one seed and not the sweep, and every core is used.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "base/status.h"
#include "lab/scenario/scenario.h"

namespace gannet::scenario {

struct SweepOptions {
  uint64_t first_seed = 1;
  uint64_t seeds = 1;
  int jobs = 1;                             // children at once
  uint64_t limit_seconds = 300;             // of CPU time, per seed; a seed that exceeds it counts as failed
  ScenarioOptions scenario;                 // without the seed and the trace
  const std::atomic<bool>* stop = nullptr;  // may be null; true: end early, with the seeds visited so far
};

// Calls `visit` for every seed, in the order in which they end; `visit` returns false to stop. Cancelled if `stop`
// ended the sweep. Not thread-safe (it forks): for programs that have no other threads yet.
Status RunSweep(const SweepOptions& options, const std::function<bool(const ScenarioReport& report)>& visit);

}  // namespace gannet::scenario
