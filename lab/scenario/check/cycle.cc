#include "lab/scenario/check/cycle.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace gannet::scenario {
namespace {

// Tarjan's algorithm for strongly connected components, without recursion.
class Components {
 public:
  Components(const DependencyGraph& graph, const Adjacency& adjacency)
      : graph_(graph), adjacency_(adjacency), component_(graph.num_nodes(), kNone), marks_(graph.num_nodes()) {
    for (uint32_t node = 0; node < graph.num_nodes(); ++node) {
      if (marks_[node].number == 0) Visit(node);
    }
  }
  // Components of more than one node.
  const std::vector<std::vector<uint32_t>>& cyclic() const { return cyclic_; }
  uint32_t of(uint32_t node) const { return component_[node]; }

 private:
  struct Mark {
    uint32_t number = 0;  // in the order of discovery, from 1
    uint32_t low = 0;
  };
  struct Frame {
    uint32_t node;
    uint32_t next_edge;
  };

  void Discover(uint32_t node) {
    marks_[node].number = marks_[node].low = ++last_number_;
    open_.push_back(node);
    frames_.push_back({node, 0});
  }

  void Visit(uint32_t root) {
    Discover(root);
    while (!frames_.empty()) {
      Frame& frame = frames_.back();
      const uint32_t node = frame.node;
      const std::span<const uint32_t> edges = adjacency_.of(node);
      if (frame.next_edge < edges.size()) {
        const uint32_t to = graph_.edges()[edges[frame.next_edge++]].to;
        if (marks_[to].number == 0) {
          Discover(to);
        } else if (component_[to] == kNone) {
          marks_[node].low = std::min(marks_[node].low, marks_[to].number);
        }
        continue;
      }
      frames_.pop_back();
      if (marks_[node].low == marks_[node].number) Close(node);
      if (frames_.empty()) continue;
      Mark& parent = marks_[frames_.back().node];
      parent.low = std::min(parent.low, marks_[node].low);
    }
  }

  void Close(uint32_t root) {
    const auto begin = std::find(open_.rbegin(), open_.rend(), root).base() - 1;
    for (auto node = begin; node != open_.end(); ++node) component_[*node] = num_components_;
    if (open_.end() - begin > 1) cyclic_.emplace_back(begin, open_.end());
    ++num_components_;
    open_.erase(begin, open_.end());
  }

  const DependencyGraph& graph_;
  const Adjacency& adjacency_;
  std::vector<uint32_t> component_;
  std::vector<Mark> marks_;
  std::vector<uint32_t> open_;
  std::vector<Frame> frames_;
  std::vector<std::vector<uint32_t>> cyclic_;
  uint32_t last_number_ = 0;
  uint32_t num_components_ = 0;
};

// Breadth-first search from one operation after another within a component. A step to a barrier costs 0, a step to an
// operation 1.
class ShortestCycle {
 public:
  ShortestCycle(const DependencyGraph& graph, const Adjacency& adjacency, const Components& components)
      : graph_(graph), adjacency_(adjacency), components_(components), reached_(graph.num_nodes()) {}

  Cycle Find(const std::vector<uint32_t>& component) {
    Cycle best;
    size_t work = 0;
    for (const uint32_t node : component) {
      if (graph_.IsBarrier(node)) continue;
      if (work > kMaxSteps && best.length > 0) break;
      work += Search(node, best.length == 0 ? SIZE_MAX : best.length, &best);
    }
    return best;
  }

 private:
  static constexpr size_t kMaxSteps = 20'000'000;
  struct Reached {
    uint32_t search = 0;  // number of the search that reached it
    uint32_t distance = 0;
    uint32_t by = kNone;  // edge
  };

  // Searches for a cycle through `start` with fewer than `bound` operations. Returns the number of edges that it
  // visited.
  size_t Search(uint32_t start, size_t bound, Cycle* best) {
    ++search_;
    size_t steps = 0;
    std::deque<uint32_t> queue{start};
    reached_[start] = {search_, 0, kNone};
    while (!queue.empty()) {
      const uint32_t node = queue.front();
      queue.pop_front();
      const uint32_t here = reached_[node].distance;
      if (here + 1 >= bound) break;
      for (const uint32_t e : adjacency_.of(node)) {
        ++steps;
        const uint32_t to = graph_.edges()[e].to;
        if (to == start) {
          *best = Trace(start, e, here + 1);
          return steps;
        }
        if (components_.of(to) != components_.of(start)) continue;
        const bool free = graph_.IsBarrier(to);
        const uint32_t distance = here + (free ? 0 : 1);
        Reached& reached = reached_[to];
        if (reached.search == search_ && reached.distance <= distance) continue;
        reached = {search_, distance, e};
        free ? queue.push_front(to) : queue.push_back(to);
      }
    }
    return steps;
  }

  Cycle Trace(uint32_t start, uint32_t last, size_t length) const {
    Cycle cycle{{last}, length};
    for (uint32_t node = graph_.edges()[last].from; node != start; node = graph_.edges()[cycle.edges.back()].from) {
      cycle.edges.push_back(reached_[node].by);
    }
    std::ranges::reverse(cycle.edges);
    return cycle;
  }

  const DependencyGraph& graph_;
  const Adjacency& adjacency_;
  const Components& components_;
  std::vector<Reached> reached_;
  uint32_t search_ = 0;
};

}  // namespace

std::vector<Cycle> FindCycles(const DependencyGraph& graph, const Adjacency& adjacency, size_t most) {
  const Components components(graph, adjacency);
  std::vector<Cycle> cycles;
  if (components.cyclic().empty()) return cycles;
  ShortestCycle shortest(graph, adjacency, components);
  for (const std::vector<uint32_t>& component : components.cyclic()) {
    if (cycles.size() == most) break;
    cycles.push_back(shortest.Find(component));
  }
  std::ranges::stable_sort(cycles, {}, &Cycle::length);
  return cycles;
}

}  // namespace gannet::scenario
