#include "lab/scenario/check/cycle.h"

#include <algorithm>
#include <array>

#include "base/random.h"
#include "gtest/gtest.h"

namespace gannet::scenario {
namespace cycle_test {

constexpr uint32_t kGraphNodes = 12;
constexpr size_t kFar = 1000;

// The length of the shortest cycle, by the Floyd-Warshall algorithm; kFar if there is none.
size_t ShortestByForce(const DependencyGraph& graph) {
  std::array<std::array<size_t, kGraphNodes>, kGraphNodes> distance;
  for (auto& row : distance) row.fill(kFar);
  for (const Edge& edge : graph.edges()) distance[edge.from][edge.to] = 1;
  for (uint32_t k = 0; k < kGraphNodes; ++k) {
    for (uint32_t i = 0; i < kGraphNodes; ++i) {
      for (uint32_t j = 0; j < kGraphNodes; ++j) {
        distance[i][j] = std::min(distance[i][j], distance[i][k] + distance[k][j]);
      }
    }
  }
  size_t shortest = kFar;
  for (uint32_t i = 0; i < kGraphNodes; ++i) shortest = std::min(shortest, distance[i][i]);
  return shortest;
}

TEST(Cycle, TheShortestOneOfRandomGraphs) {
  Random random(1);
  size_t cyclic = 0;
  for (int round = 0; round < 2'000; ++round) {
    DependencyGraph graph(kGraphNodes);
    const uint64_t edges = random.Below(30);
    for (uint64_t i = 0; i < edges; ++i) {
      graph.Add({.from = static_cast<uint32_t>(random.Below(kGraphNodes)),
                 .to = static_cast<uint32_t>(random.Below(kGraphNodes))});
    }
    const size_t expected = ShortestByForce(graph);
    const std::vector<Cycle> cycles = FindCycles(graph, Adjacency(graph, {}), 100);
    ASSERT_EQ(cycles.empty(), expected == kFar) << "round " << round;
    if (cycles.empty()) continue;
    ++cyclic;
    ASSERT_EQ(cycles[0].length, expected) << "round " << round;
    for (const Cycle& cycle : cycles) {
      ASSERT_EQ(cycle.edges.size(), cycle.length);
      for (size_t i = 0; i < cycle.edges.size(); ++i) {
        const uint32_t next = cycle.edges[(i + 1) % cycle.edges.size()];
        ASSERT_EQ(graph.edges()[cycle.edges[i]].to, graph.edges()[next].from);
      }
    }
  }
  EXPECT_GT(cyclic, 500u);
  EXPECT_LT(cyclic, 1'800u);
}

TEST(Cycle, BarriersDoNotCount) {
  // 0 -> barriers -> 1 -> 0 is shorter than 2 -> 3 -> 0 -> 2.
  DependencyGraph graph(4);
  graph.Add({.from = 0, .to = 2});
  graph.Add({.from = 2, .to = 3});
  graph.Add({.from = 3, .to = 0});
  uint32_t last = 0;
  for (int i = 0; i < 10; ++i) {
    const uint32_t barrier = graph.AddBarrier();
    graph.Add({.from = last, .to = barrier});
    last = barrier;
  }
  graph.Add({.from = last, .to = 1});
  graph.Add({.from = 1, .to = 0});
  const std::vector<Cycle> cycles = FindCycles(graph, Adjacency(graph, {}), 10);
  ASSERT_EQ(cycles.size(), 1u);
  EXPECT_EQ(cycles[0].length, 2u);
}

TEST(Cycle, GuessedEdgesCanBeLeftOut) {
  DependencyGraph graph(2);
  graph.Add({.from = 0, .to = 1});
  graph.Add({.from = 1, .to = 0, .guessed = true});
  EXPECT_EQ(FindCycles(graph, Adjacency(graph, {}), 10).size(), 1u);
  EXPECT_TRUE(FindCycles(graph, Adjacency(graph, {.certain = true}), 10).empty());
}

TEST(Cycle, ALongChainNeedsNoStack) {
  DependencyGraph graph(1'000'000);
  for (uint32_t i = 0; i + 1 < graph.num_operations(); ++i) graph.Add({.from = i, .to = i + 1});
  EXPECT_TRUE(FindCycles(graph, Adjacency(graph, {}), 10).empty());
}

}  // namespace cycle_test
}  // namespace gannet::scenario
