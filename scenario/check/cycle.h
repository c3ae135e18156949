// Cycles of a dependency graph: one for each strongly connected component, the shortest that can be found with bounded
// work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scenario/check/dependency_graph.h"

namespace gannet::scenario {

struct Cycle {
  // Places in graph.edges(); each ends where the next begins. Barriers are between; they do not count for the length.
  std::vector<uint32_t> edges;
  size_t length = 0;  // in operations
};

// At most `most`, shortest first. Empty if the graph has none.
std::vector<Cycle> FindCycles(const DependencyGraph& graph, const Adjacency& adjacency, size_t most);

}  // namespace gannet::scenario
