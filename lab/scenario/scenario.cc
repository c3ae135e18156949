#include "lab/scenario/scenario.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/sometimes.h"
#include "base/stop.h"
#include "lab/scenario/run.h"
#include "rdma/sim/simulation.h"

namespace gannet::scenario {

std::vector<Interruption> InterruptionsOf(const ScenarioOptions& drawn) {
  std::vector<Interruption> result;
  result.insert(result.end(), static_cast<size_t>(drawn.power_cuts), Interruption::kPowerCut);
  result.insert(result.end(), static_cast<size_t>(drawn.deaths), Interruption::kDeath);
  result.insert(result.end(), static_cast<size_t>(drawn.checks), Interruption::kCheck);
  Random random(Mix64(drawn.seed) ^ 0x12e4f);
  for (size_t i = result.size(); i > 1; --i) std::swap(result[i - 1], result[random.Below(i)]);
  return result;
}

ScenarioReport RunScenario(const ScenarioOptions& options) {
  const uint64_t begun = NowNanos();
  const ScenarioOptions drawn = Drawn(options);
  ScenarioReport report;
  report.seed = drawn.seed;
  Mark::Reset();
  {
    rdma::sim::SimulationOptions simulated;
    simulated.seed = drawn.seed;
    simulated.trace = drawn.trace;
    rdma::sim::Simulation simulation(simulated);
    const Status status = drawn.workload == kTpccWorkload ? RunTpcc(&simulation, drawn, &report)
                                                          : RunClients(&simulation, drawn, &report);
    if (!status.ok()) {
      report.passed = false;
      report.stopped = absl::IsCancelled(status) && IsStopRequested(options.stop);
      report.verdict = status.ToString();
    }
    const rdma::sim::SimulationStatistics statistics = simulation.statistics();
    report.events = statistics.events;
    report.switches = statistics.switches;
    report.preemptions = statistics.preemptions;
    report.virtual_nanos = simulation.now();
    report.digest = simulation.digest();
  }
  for (const Mark* mark : Mark::All()) {
    if (mark->reached() > 0 && mark->in_scenarios()) report.marks.emplace(mark->name(), mark->reached());
  }
  report.real_nanos = NowNanos() - begun;
  return report;
}

}  // namespace gannet::scenario
