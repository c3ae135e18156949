// SerialOrder: an order of all nodes of an acyclic graph that respects its edges, maintained while edges are added
// (Pearce and Kelly, "A dynamic topological sort algorithm for directed acyclic graphs", JEA 2006).
#pragma once

#include <cstdint>
#include <vector>

#include "lab/scenario/check/dependency_graph.h"

namespace gannet::scenario {

class SerialOrder {
 public:
  // `weight`, by node: where edges leave a choice, the smaller weight goes first. The graph has no cycle; later edges
  // must be added by AddEdge.
  SerialOrder(const DependencyGraph& graph, const std::vector<uint64_t>& weight);

  uint32_t position(uint32_t node) const { return position_[node]; }
  // Returns false, without a change, if the edge closes a cycle.
  bool AddEdge(uint32_t from, uint32_t to);

 private:
  void Sort(const std::vector<uint64_t>& weight);
  bool CollectForward(uint32_t from, uint32_t until);
  void CollectBackward(uint32_t to, uint32_t since);
  void Reorder();

  const DependencyGraph& graph_;
  Adjacency out_;
  Adjacency in_;
  std::vector<std::vector<uint32_t>> more_out_;
  std::vector<std::vector<uint32_t>> more_in_;
  std::vector<uint32_t> position_;
  std::vector<uint8_t> visited_;
  std::vector<uint32_t> forward_;
  std::vector<uint32_t> backward_;
};

}  // namespace gannet::scenario
