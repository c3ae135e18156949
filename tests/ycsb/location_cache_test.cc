#include "ycsb/location_cache.h"

#include "gtest/gtest.h"

namespace gannet::ycsb {
namespace location_cache_test {

rdma::GlobalAddress RecordOf(uint64_t key) {
  return {static_cast<rdma::NodeId>(key % LocationCache::kMaxServers), (key + 1) * kLineBytes};
}

TEST(LocationCacheTest, RemembersForgetsAndReplaces) {
  LocationCache cache(64 << 10);
  EXPECT_EQ(cache.bytes(), 64U << 10);
  EXPECT_TRUE(cache.Find(7).is_null());
  cache.Put(7, RecordOf(7));
  EXPECT_EQ(cache.Find(7), RecordOf(7));
  cache.Put(7, RecordOf(8));
  EXPECT_EQ(cache.Find(7), RecordOf(8));
  cache.Forget(7);
  EXPECT_TRUE(cache.Find(7).is_null());
  cache.Forget(7);
}

TEST(LocationCacheTest, HoldsAHalfFullLoadOfAllServersNearlyWhole) {
  LocationCache cache(1 << 20);
  constexpr uint64_t kKeys = (1 << 20) / 16;
  for (uint64_t key = 0; key < kKeys; ++key) cache.Put(key, RecordOf(key));
  uint64_t known = 0;
  for (uint64_t key = 0; key < kKeys; ++key) {
    const rdma::GlobalAddress found = cache.Find(key);
    known += found == RecordOf(key) ? 1 : 0;
  }
  EXPECT_GT(known, kKeys * 95 / 100);
}

TEST(LocationCacheTest, KeepsTheNewestAndItsSize) {
  LocationCache cache(100);
  EXPECT_EQ(cache.bytes(), kLineBytes);
  for (uint64_t key = 0; key < 100; ++key) cache.Put(key, RecordOf(key));
  for (uint64_t key = 92; key < 100; ++key) EXPECT_EQ(cache.Find(key), RecordOf(key));
  for (uint64_t key = 0; key < 92; ++key) EXPECT_TRUE(cache.Find(key).is_null());
}

}  // namespace location_cache_test
}  // namespace gannet::ycsb
