// Many scenarios, one seed after the other, each in a child process: what dead nodes leak goes with it, a broken
// invariant stops one seed and not the sweep, and every core works.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "base/status.h"
#include "scenario/scenario.h"

namespace gannet::scenario {

struct SweepOptions {
  uint64_t first_seed = 1;
  uint64_t seeds = 1;
  int jobs = 1;                             // children at once
  uint64_t limit_seconds = 300;             // of a CPU's time, for one seed; then it counts as failed
  ScenarioOptions scenario;                 // but for the seed and the trace
  const std::atomic<bool>* stop = nullptr;  // may be null; true: end early, with what was visited
};

// Calls `visit` for every seed, in the order in which they end; it returns false to stop. Cancelled if `stop` ended it.
// Not thread-safe (it forks): for programs that have no other threads yet.
Status RunSweep(const SweepOptions& options, const std::function<bool(const ScenarioReport& report)>& visit);

}  // namespace gannet::scenario
