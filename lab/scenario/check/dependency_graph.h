// DependencyGraph: which transaction must come before which, and for what reason.
//
//   ww  b overwrote what a wrote            wr  b read what a wrote
//   rw  b overwrote what a read             rt  a was complete before b was invoked; or a client's a came before its b
//
// A cycle means that no serial order explains the history. Real time would need an edge for each pair; instead there is
// a chain of barriers, one for each completed transaction in the order of completion: an operation leads to its
// barrier, a barrier to the next one, and the last barrier before an invocation to the invoked operation. Nodes below
// num_operations() are operations, the others barriers.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lab/scenario/check/commits.h"
#include "lab/scenario/check/history.h"
#include "lab/scenario/check/version_order.h"

namespace gannet::scenario {

enum class EdgeKind : uint8_t { kWriteWrite, kWriteRead, kReadWrite, kRealTime };

struct Edge {
  uint32_t from;
  uint32_t to;
  KeyIndex key = kNone;  // of an edge between accesses of a key
  EdgeKind kind = EdgeKind::kRealTime;
  bool guessed = false;
  bool absence = false;  // the read found the key absent
  bool by_scan = false;
};

class DependencyGraph {
 public:
  explicit DependencyGraph(uint32_t num_operations) : num_operations_(num_operations), num_nodes_(num_operations) {}

  // Ignores an edge from a node to itself.
  void Add(const Edge& edge) {
    if (edge.from != edge.to) edges_.push_back(edge);
  }
  uint32_t AddBarrier() { return num_nodes_++; }
  bool IsBarrier(uint32_t node) const { return node >= num_operations_; }
  uint32_t num_operations() const { return num_operations_; }
  uint32_t num_nodes() const { return num_nodes_; }
  const std::vector<Edge>& edges() const { return edges_; }

 private:
  uint32_t num_operations_;
  uint32_t num_nodes_;
  std::vector<Edge> edges_;
};

// The edges of a graph by the node that they leave (or enter, if `reversed`). `certain`: without guessed edges.
class Adjacency {
 public:
  struct Options {
    bool certain = false;
    bool reversed = false;
  };
  Adjacency(const DependencyGraph& graph, Options options);
  // Indexes into graph.edges().
  std::span<const uint32_t> of(uint32_t node) const {
    return std::span(edges_).subspan(first_[node], first_[node + 1] - first_[node]);
  }

 private:
  std::vector<uint32_t> first_;
  std::vector<uint32_t> edges_;
};

// Makes all edges except those of reads that found a key absent (absence.h).
DependencyGraph BuildGraph(const History& history, const WriteIndex& index, const Commits& commits,
                           const VersionOrder& order);

}  // namespace gannet::scenario
