#include "lab/scenario/check/serial_order.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "base/check.h"

namespace gannet::scenario {

SerialOrder::SerialOrder(const DependencyGraph& graph, const std::vector<uint64_t>& weight)
    : graph_(graph),
      out_(graph, {}),
      in_(graph, {.reversed = true}),
      more_out_(graph.num_nodes()),
      more_in_(graph.num_nodes()),
      position_(graph.num_nodes()),
      visited_(graph.num_nodes()) {
  Sort(weight);
}

void SerialOrder::Sort(const std::vector<uint64_t>& weight) {
  std::vector<uint32_t> missing(graph_.num_nodes());
  for (const Edge& edge : graph_.edges()) ++missing[edge.to];
  using Ready = std::pair<uint64_t, uint32_t>;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (uint32_t node = 0; node < graph_.num_nodes(); ++node) {
    if (missing[node] == 0) ready.emplace(weight[node], node);
  }
  uint32_t next = 0;
  while (!ready.empty()) {
    const uint32_t node = ready.top().second;
    ready.pop();
    position_[node] = next++;
    for (const uint32_t e : out_.of(node)) {
      const uint32_t to = graph_.edges()[e].to;
      if (--missing[to] == 0) ready.emplace(weight[to], to);
    }
  }
  GANNET_CHECK(next == graph_.num_nodes(), "%u of %u nodes: the graph has a cycle", next, graph_.num_nodes());
}

bool SerialOrder::AddEdge(uint32_t from, uint32_t to) {
  if (from == to) return false;
  if (position_[from] > position_[to]) {
    const bool cycle = !CollectForward(to, from);
    if (cycle) {
      for (const uint32_t node : forward_) visited_[node] = 0;
      return false;
    }
    CollectBackward(from, position_[to]);
    Reorder();
  }
  more_out_[from].push_back(to);
  more_in_[to].push_back(from);
  return true;
}

// Collects the nodes reachable from `from`, up to the position of `until`. Returns false if `until` is reached.
bool SerialOrder::CollectForward(uint32_t from, uint32_t until) {
  forward_.assign(1, from);
  visited_[from] = 1;
  const auto reach = [&](uint32_t node) {
    if (visited_[node] || position_[node] > position_[until]) return;
    visited_[node] = 1;
    forward_.push_back(node);
  };
  for (size_t i = 0; i < forward_.size(); ++i) {
    const uint32_t node = forward_[i];
    if (node == until) return false;
    for (const uint32_t e : out_.of(node)) reach(graph_.edges()[e].to);
    for (const uint32_t next : more_out_[node]) reach(next);
  }
  return true;
}

void SerialOrder::CollectBackward(uint32_t to, uint32_t since) {
  backward_.assign(1, to);
  visited_[to] = 1;
  const auto reach = [&](uint32_t node) {
    if (visited_[node] || position_[node] < since) return;
    visited_[node] = 1;
    backward_.push_back(node);
  };
  for (size_t i = 0; i < backward_.size(); ++i) {
    const uint32_t node = backward_[i];
    for (const uint32_t e : in_.of(node)) reach(graph_.edges()[e].from);
    for (const uint32_t before : more_in_[node]) reach(before);
  }
}

// Redistributes the positions of both sets: the nodes that lead to the new edge come first.
void SerialOrder::Reorder() {
  const auto position_of = [&](uint32_t node) { return position_[node]; };
  std::ranges::sort(backward_, {}, position_of);
  std::ranges::sort(forward_, {}, position_of);
  backward_.insert(backward_.end(), forward_.begin(), forward_.end());
  std::vector<uint32_t> places;
  for (const uint32_t node : backward_) {
    places.push_back(position_[node]);
    visited_[node] = 0;
  }
  std::ranges::sort(places);
  for (size_t i = 0; i < backward_.size(); ++i) position_[backward_[i]] = places[i];
}

}  // namespace gannet::scenario
