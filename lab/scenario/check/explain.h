// Describes a cycle: its name, and why each transaction comes before the next one.
#pragma once

#include "lab/scenario/check/anomaly.h"
#include "lab/scenario/check/commits.h"
#include "lab/scenario/check/cycle.h"
#include "lab/scenario/check/dependency_graph.h"
#include "lab/scenario/check/history.h"
#include "lab/scenario/check/write_index.h"

namespace gannet::scenario {

Anomaly Explain(const History& history, const WriteIndex& index, const Commits& commits, const DependencyGraph& graph,
                const Cycle& cycle);

}  // namespace gannet::scenario
