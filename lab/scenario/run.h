// The kinds of runs of a scenario.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.h"
#include "lab/scenario/scenario.h"
#include "rdma/sim/simulation.h"

namespace gannet::scenario {

// An interruption between two parts of the first phase.
enum class Interruption : uint8_t {
  kPowerCut,
  kDeath,
  kCheck,  // the clients finish their transactions, everything is checked, and new clients begin
};
// The interruptions in their order, drawn from the seed.
std::vector<Interruption> InterruptionsOf(const ScenarioOptions& drawn);

// Both fill *report with the verdict and the counters; an error is a failure instead. After an error some of their
// objects are leaked, because threads of the simulation may still use them.

// Runs the workloads of workload/workload.h: clients whose history goes to a checker.
Status RunClients(rdma::sim::Simulation* simulation, const ScenarioOptions& drawn, ScenarioReport* report);
// Runs TPC-C: its twelve conditions must hold at the end, and after every power cut.
Status RunTpcc(rdma::sim::Simulation* simulation, const ScenarioOptions& drawn, ScenarioReport* report);

}  // namespace gannet::scenario
