// The suite that every spatial index passes, in addition to that of all indexes: test keys that are rectangles,
// windows, the model's answers, and a history for what threads saw.
//
//   INSTANTIATE_TEST_SUITE_P(Catfish, SpatialSuite, testing::ValuesIn(...), CaseName);
#pragma once

#include <atomic>
#include <cstdint>
#include <set>
#include <vector>

#include "base/random.h"
#include "index/rectangle.h"
#include "tests/conformance/index_suite.h"

namespace gannet::index {

// The n-th rectangle, with id n. Most lie on a grid of 1/64 around the origin, so that edges touch, some are points,
// and many overlap. 0 covers everything; the last two are corners of the plane.
OwnedKey RectangleTestKey(uint64_t n);
// The rectangle of a key of RectangleTestKey; its number is the id.
RectangleKey RectangleOf(const OwnedKey& key);

// A window on the same grid: mostly small, sometimes a point or everything.
Rectangle RandomWindow(Random* random);

// Ids of the keys of the model whose rectangles meet the window.
std::set<uint64_t> IdsIn(const Model& model, const Rectangle& window);
// Ids of entries; a failed test if an id is there twice.
std::set<uint64_t> IdsOf(const std::vector<Entry>& entries);
// The k least squared distances of the model's rectangles to a point, ascending.
std::vector<double> LeastDistances(const Model& model, double x, double y, size_t k);
std::vector<double> DistancesOf(const std::vector<Entry>& entries, double x, double y);

class SpatialSuite : public IndexSuite {
 protected:
  static constexpr uint64_t kRectangles = 1200;  // test keys of most tests

  // Inserts some absent keys and removes some present ones.
  void ChangeSome(int changes, Random* random);
  // Inserts the key, or removes it if it is present.
  Change Toggle(const OwnedKey& key) { return model_.contains(key) ? RemoveBoth(key) : InsertBoth(key); }
  ScanResult MustSearch(const Rectangle& window, bool at_one_moment = false);
};

// What threads did, to find out afterwards whether what others saw existed at one moment.
//
// A clock gives every step a number. A writer notes the clock before and after each change of one of its keys; between
// the two the key may be seen as either. Each key has one writer.
class SpatialHistory {
 public:
  explicit SpatialHistory(uint64_t keys);

  uint64_t Tick() { return clock_.fetch_add(1); }
  // Called by the key's writer.
  void Note(uint64_t key, bool present, uint64_t begin, uint64_t end) {
    changes_[key].push_back({present, begin, end});
  }

  // After all threads have ended. Did the window have exactly these ids at `moment`?
  bool WasAt(const Rectangle& window, const std::set<uint64_t>& ids, uint64_t moment) const;
  // The same for some moment of [begin, end].
  bool WasBetween(const Rectangle& window, const std::set<uint64_t>& ids, uint64_t begin, uint64_t end) const;

 private:
  struct ChangeOfKey {
    bool present;  // afterwards
    uint64_t begin;
    uint64_t end;
  };
  std::vector<Rectangle> boxes_;  // by key
  std::atomic<uint64_t> clock_{1};
  std::vector<std::vector<ChangeOfKey>> changes_;  // by key
};

// Inserts and removes the keys with numbers `self` modulo `writers` and below `keys`, and notes it.
void ChurnRectangles(LocalIndex* index, IndexCluster* cluster, uint64_t keys, int self, int writers, int operations,
                     SpatialHistory* history);

}  // namespace gannet::index
