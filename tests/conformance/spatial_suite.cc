#include "tests/conformance/spatial_suite.h"

#include <algorithm>
#include <map>

#include "base/check.h"

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

std::set<uint64_t> IdsIn(const Model& model, const Rectangle& window) {
  std::set<uint64_t> ids;
  for (const auto& [key, record] : model) {
    const RectangleKey rectangle = RectangleOf(key);
    if (rectangle.box.Meets(window)) ids.insert(rectangle.id);
  }
  return ids;
}

std::set<uint64_t> IdsOf(const std::vector<Entry>& entries) {
  std::set<uint64_t> ids;
  for (const Entry& entry : entries) {
    const uint64_t id = RectangleOf(entry.key).id;
    EXPECT_TRUE(ids.insert(id).second) << "id " << id << " was found twice";
  }
  return ids;
}

std::vector<double> LeastDistances(const Model& model, double x, double y, size_t k) {
  std::vector<double> distances;
  for (const auto& [key, record] : model) distances.push_back(RectangleOf(key).box.SquaredDistance(x, y));
  std::ranges::sort(distances);
  distances.resize(std::min(k, distances.size()));
  return distances;
}

std::vector<double> DistancesOf(const std::vector<Entry>& entries, double x, double y) {
  std::vector<double> distances;
  for (const Entry& entry : entries) distances.push_back(RectangleOf(entry.key).box.SquaredDistance(x, y));
  return distances;
}

void SpatialSuite::ChangeSome(int changes, Random* random) {
  for (int i = 0; i < changes; ++i) {
    const OwnedKey key = KeyOf(random->Below(kRectangles));
    if (!model_.contains(key)) {
      InsertBoth(key);
    } else if (random->OneIn(2)) {
      RemoveBoth(key);
    }
  }
}

ScanResult SpatialSuite::MustSearch(const Rectangle& window, bool at_one_moment) {
  ScanResult result;
  const Status status = index_->Search({.window = window, .at_one_moment = at_one_moment}, &result);
  EXPECT_TRUE(status.ok()) << status;
  return result;
}

SpatialHistory::SpatialHistory(uint64_t keys) : changes_(keys) {
  for (uint64_t n = 0; n < keys; ++n) boxes_.push_back(RectangleOf(RectangleTestKey(n)).box);
}

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
  for (uint64_t moment = begin; moment <= end; ++moment) {
    if (WasAt(window, ids, moment)) return true;
  }
  return false;
}

void ChurnRectangles(LocalIndex* index, IndexCluster* cluster, uint64_t keys, int self, int writers, int operations,
                     SpatialHistory* history) {
  OwnerThread owner(cluster);
  Random random(200 + static_cast<uint64_t>(self));
  std::map<uint64_t, rdma::GlobalAddress> mine;
  for (int i = 0; i < operations; ++i) {
    const uint64_t share = (keys - static_cast<uint64_t>(self) - 1) / static_cast<uint64_t>(writers) + 1;
    const uint64_t n = random.Below(share) * static_cast<uint64_t>(writers) + static_cast<uint64_t>(self);
    const OwnedKey key = RectangleTestKey(n);
    EpochGuard guard(owner.epoch());
    const auto at = mine.find(n);
    if (at == mine.end()) {
      const rdma::GlobalAddress record = owner.NewRecord(key.view());
      const uint64_t begin = history->Tick();
      const auto change = index->Insert(owner.context(), key.view(), record, nullptr);
      ASSERT_TRUE(change.ok()) << change.status();
      history->Note(n, true, begin, history->Tick());
      mine.emplace(n, record);
    } else {
      const uint64_t begin = history->Tick();
      const auto change = index->Remove(owner.context(), key.view(), at->second);
      ASSERT_TRUE(change.ok()) << change.status();
      history->Note(n, false, begin, history->Tick());
      owner.RetireRecord(at->second);
      mine.erase(at);
    }
  }
}

}  // namespace gannet::index
