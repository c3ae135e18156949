// Cycles of a dependency graph: one for each strongly connected component, the shortest one found with bounded work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lab/scenario/check/dependency_graph.h"

namespace gannet::scenario {

struct Cycle {
  // Indexes into graph.edges(); each edge ends where the next one begins. Barriers on the way do not count for the
  // length.
  std::vector<uint32_t> edges;
  size_t length = 0;  // in operations
};

// Returns at most `most` cycles, shortest first. Empty if the graph has none.
std::vector<Cycle> FindCycles(const DependencyGraph& graph, const Adjacency& adjacency, size_t most);

}  // namespace gannet::scenario
