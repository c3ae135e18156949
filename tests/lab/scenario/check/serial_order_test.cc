#include "lab/scenario/check/serial_order.h"

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "lab/scenario/check/cycle.h"

namespace gannet::scenario {
namespace serial_order_test {

TEST(SerialOrder, WeightsDecideWhatEdgesLeaveOpen) {
  DependencyGraph graph(4);
  graph.Add({.from = 3, .to = 0});
  const SerialOrder order(graph, {1, 20, 10, 30});
  EXPECT_EQ(order.position(2), 0u);
  EXPECT_EQ(order.position(1), 1u);
  EXPECT_EQ(order.position(3), 2u);
  EXPECT_EQ(order.position(0), 3u);
}

TEST(SerialOrder, EdgesAreAddedUnlessTheyCloseACycle) {
  constexpr uint32_t kNodes = 20;
  Random random(1);
  size_t refused = 0;
  for (int round = 0; round < 300; ++round) {
    const auto draw = [&] { return static_cast<uint32_t>(random.Below(kNodes)); };
    DependencyGraph graph(kNodes);
    std::vector<uint64_t> weights;
    for (uint32_t i = 0; i < kNodes; ++i) weights.push_back(random.Below(10));
    for (int i = 0; i < 8; ++i) {
      const uint32_t a = draw();
      const uint32_t b = draw();
      graph.Add({.from = std::min(a, b), .to = std::max(a, b)});
    }
    SerialOrder order(graph, weights);
    DependencyGraph all = graph;
    for (int i = 0; i < 40; ++i) {
      const Edge edge{.from = draw(), .to = draw()};
      DependencyGraph with = all;
      with.Add(edge);
      const bool fits = edge.from != edge.to && FindCycles(with, Adjacency(with, {}), 1).empty();
      ASSERT_EQ(order.AddEdge(edge.from, edge.to), fits);
      if (fits) all = with;
      refused += fits ? 0 : 1;
      for (const Edge& kept : all.edges()) ASSERT_LT(order.position(kept.from), order.position(kept.to));
    }
  }
  EXPECT_GT(refused, 1'000u);
}

}  // namespace serial_order_test
}  // namespace gannet::scenario
