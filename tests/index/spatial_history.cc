#include "tests/index/spatial_history.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "gtest/gtest.h"

namespace gannet::index {
namespace {

constexpr double kCell = 1.0 / 64;
constexpr uint64_t kGrid = 1024;  // cells of an axis

double Coordinate(uint64_t cell) {
  return (static_cast<double>(cell) - kGrid / 2.0) * kCell;
}

}  // namespace

OwnedKey RectangleTestKey(uint64_t n) {
  Rectangle box;
  if (n == 0) {
    box = Rectangle::Everything();
  } else if (n >= UINT64_MAX - 1) {
    const double corner = n == UINT64_MAX ? kMaxCoordinate : -kMaxCoordinate;
    box = Rectangle::Point(corner, corner);
  } else {
    Random random(n);
    box = Rectangle::Point(Coordinate(random.Below(kGrid)), Coordinate(random.Below(kGrid)));
    if (!random.OneIn(8)) {
      box.max_x += static_cast<double>(random.Below(64)) * kCell;
      box.max_y += static_cast<double>(random.Below(64)) * kCell;
    }
  }
  const auto key = EncodeRectangleKey(box, n);
  GANNET_CHECK(key.ok(), "%s", key.status().ToString());
  return OwnedKey(key->view());
}

RectangleKey RectangleOf(const OwnedKey& key) {
  const auto decoded = DecodeRectangleKey(key.view());
  GANNET_CHECK(decoded.ok(), "%s", decoded.status().ToString());
  return *decoded;
}

Rectangle RandomWindow(Random* random) {
  if (random->OneIn(40)) return Rectangle::Everything();
  Rectangle window = Rectangle::Point(Coordinate(random->Below(kGrid)), Coordinate(random->Below(kGrid)));
  if (random->OneIn(5)) return window;
  const uint64_t most = random->OneIn(4) ? 400 : 60;
  window.max_x += static_cast<double>(random->Below(most)) * kCell;
  window.max_y += static_cast<double>(random->Below(most)) * kCell;
  return window;
}

std::set<uint64_t> IdsOf(const std::vector<Entry>& entries) {
  std::set<uint64_t> ids;
  for (const Entry& entry : entries) {
    const uint64_t id = RectangleOf(entry.key).id;
    EXPECT_TRUE(ids.insert(id).second) << "id " << id << " was found twice";
  }
  return ids;
}

std::vector<Rectangle> TestRectangles(uint64_t keys) {
  std::vector<Rectangle> boxes;
  for (uint64_t n = 0; n < keys; ++n) boxes.push_back(RectangleOf(RectangleTestKey(n)).box);
  return boxes;
}

SpatialHistory::SpatialHistory(std::vector<Rectangle> boxes) : boxes_(std::move(boxes)), changes_(boxes_.size()) {}

bool SpatialHistory::WasAt(const Rectangle& window, const std::set<uint64_t>& ids, uint64_t moment) const {
  for (uint64_t n = 0; n < boxes_.size(); ++n) {
    if (changes_[n].empty() || !boxes_[n].Meets(window)) {
      if (ids.contains(n)) return false;
      continue;
    }
    // The last change that began before the moment.
    const auto after = std::ranges::upper_bound(changes_[n], moment, {}, &ChangeOfKey::begin);
    if (after == changes_[n].begin()) {
      if (ids.contains(n)) return false;
      continue;
    }
    const ChangeOfKey& last = *(after - 1);
    if (last.end < moment && last.present != ids.contains(n)) return false;
  }
  return true;
}

bool SpatialHistory::WasBetween(const Rectangle& window, const std::set<uint64_t>& ids, uint64_t begin,
                                uint64_t end) const {
  // Only changes in the window make a difference between two moments.
  std::vector<uint64_t> moments = {begin};
  for (uint64_t n = 0; n < boxes_.size(); ++n) {
    if (!boxes_[n].Meets(window)) continue;
    for (const ChangeOfKey& change : changes_[n]) {
      for (const uint64_t moment : {change.begin, change.end + 1}) {
        if (begin < moment && moment <= end) moments.push_back(moment);
      }
    }
  }
  return std::ranges::any_of(moments, [&](uint64_t moment) { return WasAt(window, ids, moment); });
}

}  // namespace gannet::index
