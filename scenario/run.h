// The kinds of runs of a scenario.
#pragma once

#include <vector>

#include "base/status.h"
#include "rdma/sim/simulation.h"
#include "scenario/scenario.h"

namespace gannet::scenario {

inline constexpr char kTpccWorkload[] = "tpcc";

// What comes between the pieces of the first phase.
enum class Interruption : uint8_t {
  kPowerCut,
  kDeath,
  kCheck,  // the clients come to the end of their transactions, all that is there is checked, and new ones begin
};
// In the order in which they come: the seed's.
std::vector<Interruption> InterruptionsOf(const ScenarioOptions& drawn);

// Both fill *report with the verdict and what was done; an error is what went wrong instead. After an error objects of
// theirs are leaked, for threads of the simulation may still use them.

// The workloads of workload/workload.h: clients whose history goes to a checker.
Status RunClients(rdma::sim::Simulation* simulation, const ScenarioOptions& drawn, ScenarioReport* report);
// TPC-C: its twelve conditions must hold in the end, and after every power cut.
Status RunTpcc(rdma::sim::Simulation* simulation, const ScenarioOptions& drawn, ScenarioReport* report);

}  // namespace gannet::scenario
