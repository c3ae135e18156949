// What tests of spatial indexes share: test keys that are rectangles, windows, and the history of what threads did.
#pragma once

#include <atomic>
#include <cstdint>
#include <set>
#include <vector>

#include "base/random.h"
#include "index/index.h"
#include "index/rectangle.h"

namespace gannet::index {

// The n-th rectangle, with id n. Most lie on a grid of 1/64 around the origin, so that edges touch, some are points,
// and many overlap. 0 covers everything; the last two are corners of the plane.
OwnedKey RectangleTestKey(uint64_t n);
// The rectangle of a key of RectangleTestKey; its number is the id.
RectangleKey RectangleOf(const OwnedKey& key);

// A window on the same grid: mostly small, sometimes a point or everything.
Rectangle RandomWindow(Random* random);

// The rectangles of the test keys below `keys`.
std::vector<Rectangle> TestRectangles(uint64_t keys);

// Ids of entries; a failed test if an id is there twice.
std::set<uint64_t> IdsOf(const std::vector<Entry>& entries);
// What threads did, to find out afterwards whether what others saw existed at one moment.
//
// A clock gives every step a number. A writer notes the clock before and after each change of one of its keys; between
// the two the key may be seen as either. Each key has one writer.
class SpatialHistory {
 public:
  // `boxes`: the rectangle of each key, by number.
  explicit SpatialHistory(std::vector<Rectangle> boxes);

  uint64_t Tick() { return clock_.fetch_add(1); }
  // Called by the key's writer.
  void Note(uint64_t key, bool present, uint64_t begin, uint64_t end) {
    changes_[key].push_back({present, begin, end});
  }

  // Whether the window had exactly these ids at `moment`. Called after all threads have ended.
  bool WasAt(const Rectangle& window, const std::set<uint64_t>& ids, uint64_t moment) const;
  // Whether the window had exactly these ids at some moment of [begin, end].
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

}  // namespace gannet::index
