#include "tests/conformance/spatial_suite.h"

#include <algorithm>
#include <map>

namespace gannet::index {
std::set<uint64_t> IdsIn(const Model& model, const Rectangle& window) {
  std::set<uint64_t> ids;
  for (const auto& [key, record] : model) {
    const RectangleKey rectangle = RectangleOf(key);
    if (rectangle.box.Meets(window)) ids.insert(rectangle.id);
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

void SpatialSuite::LoadMany(uint64_t keys) {
  Start(keys);
  EpochGuard guard(main_->epoch());
  for (uint64_t n = 1; n < keys; ++n) model_.emplace(KeyOf(n), main_->NewRecord(KeyOf(n).view()));
  std::vector<LoadEntry> entries;
  for (const auto& [key, record] : model_) entries.push_back({key.view(), record});
  const Status loaded = index_->BulkLoad(main_->context(), entries, 0.7);
  ASSERT_TRUE(loaded.ok()) << loaded;
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
