// The suite that every spatial index passes, in addition to that of all indexes: test keys that are rectangles,
// windows, the model's answers, and a history for what threads saw.
//
//   INSTANTIATE_TEST_SUITE_P(Catfish, SpatialSuite, testing::ValuesIn(...), CaseName);
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "base/random.h"
#include "index/rectangle.h"
#include "tests/conformance/index_suite.h"
#include "tests/index/spatial_history.h"

namespace gannet::index {

// Ids of the keys of the model whose rectangles meet the window.
std::set<uint64_t> IdsIn(const Model& model, const Rectangle& window);
// The k least squared distances of the model's rectangles to a point, ascending.
std::vector<double> LeastDistances(const Model& model, double x, double y, size_t k);
std::vector<double> DistancesOf(const std::vector<Entry>& entries, double x, double y);

class SpatialSuite : public IndexSuite {
 protected:
  static constexpr uint64_t kRectangles = 1200;  // test keys of most tests

  static constexpr uint64_t kMany = 6000;  // and of those whose results take several messages

  // Starts with all keys but the first of `keys`, loaded at once.
  void LoadMany(uint64_t keys);
  // Inserts some absent keys and removes some present ones.
  void ChangeSome(int changes, Random* random);
  // Inserts the key, or removes it if it is present.
  Change Toggle(const OwnedKey& key) { return model_.contains(key) ? RemoveBoth(key) : InsertBoth(key); }
  ScanResult MustSearch(const Rectangle& window, bool at_one_moment = false);
};

// Inserts and removes the keys with numbers `self` modulo `writers` and below `keys`, and notes it.
void ChurnRectangles(LocalIndex* index, IndexCluster* cluster, uint64_t keys, int self, int writers, int operations,
                     SpatialHistory* history);

}  // namespace gannet::index
