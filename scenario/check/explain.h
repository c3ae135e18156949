// Describes a cycle: its name, and why each transaction comes before the next one.
#pragma once

#include "scenario/check/anomaly.h"
#include "scenario/check/commits.h"
#include "scenario/check/cycle.h"
#include "scenario/check/dependency_graph.h"
#include "scenario/check/history.h"
#include "scenario/check/write_index.h"

namespace gannet::scenario {

Anomaly Explain(const History& history, const WriteIndex& index, const Commits& commits, const DependencyGraph& graph,
                const Cycle& cycle);

}  // namespace gannet::scenario
