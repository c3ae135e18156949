// Geometry and growth: the bucket of a key while the table splits, and how clients find it.
#include <atomic>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "tests/index/hash_fixture.h"

namespace gannet::index {
namespace hash_growth_test {

using HashGrowthTest = HashTest;
using hash::BucketFor;
using hash::BucketName;
using hash::KeyHash;
using hash::TableSize;

TEST(HashGeometryTest, EveryKeyHasOneExistingBucketAtEverySize) {
  constexpr uint64_t kInitial = 3;
  Random random(1);
  for (TableSize size(kInitial, 0); size.count() < 100; size = size.Next(kInitial)) {
    ASSERT_LE(kInitial << size.level(), size.count());
    ASSERT_LT(size.count(), kInitial << (size.level() + 1));
    for (int i = 0; i < 1000; ++i) {
      const KeyHash hash{random()};
      const BucketName name = BucketFor(hash, kInitial, size);
      ASSERT_LT(name.place + kInitial * name.path, size.count());
      // All buckets that have split in this level, and their children, have one more bit of depth.
      const uint64_t in_level = (name.place + kInitial * name.path) % (kInitial << size.level());
      const bool split = in_level < size.count() - (kInitial << size.level());
      ASSERT_TRUE(IsHome(hash, name, size.level() + (split ? 1 : 0)));
    }
  }
}

TEST(HashGeometryTest, DescendingFromAnyOldBucketReachesTheNewOne) {
  constexpr uint64_t kInitial = 3;
  Random random(2);
  TableSize now(kInitial, 0);
  while (now.count() < 77) now = now.Next(kInitial);
  for (TableSize old(kInitial, 0); old.count() < now.count(); old = old.Next(kInitial)) {
    for (int i = 0; i < 200; ++i) {
      const KeyHash hash{random()};
      const BucketName home = BucketFor(hash, kInitial, now);
      BucketName name = BucketFor(hash, kInitial, old);
      int steps = 0;
      while (name.path != home.path) {
        ASSERT_LT(++steps, hash::kMaxDepth);
        name = Descend(hash, name);
        ASSERT_LT(name.place + kInitial * name.path, now.count()) << "a bucket that is not there yet";
      }
    }
  }
}

TEST(HashGeometryTest, SegmentsHoldEachBucketOnce) {
  constexpr uint64_t kInitial = 5;
  std::set<std::pair<int, uint64_t>> places;
  for (uint64_t number = 0; number < kInitial * 16; ++number) {
    const BucketName name{number % kInitial, static_cast<uint32_t>(number / kInitial)};
    const uint64_t buckets = name.segment() == 0 ? kInitial : kInitial << (name.segment() - 1);
    EXPECT_LT(name.IndexInSegment(kInitial), buckets);
    EXPECT_TRUE(places.insert({name.segment(), name.IndexInSegment(kInitial)}).second);
  }
}

TEST_F(HashGrowthTest, ATableMadeForFewKeysTakesMany) {
  Start(10);
  std::vector<rdma::GlobalAddress> records;
  for (uint64_t key = 0; key < 20000; ++key) records.push_back(Insert(key));
  ExpectSound();
  for (uint64_t key = 0; key < 20000; ++key) ASSERT_EQ(index_->Find(key).record, records[key]);
  const Statistics statistics = index_->statistics();
  EXPECT_EQ(statistics.keys, 20000u);
  EXPECT_LE(statistics.height, 4);
  EXPECT_GT(index_->geometry().size.count(), 20000u / 6);
  // The memory is at most a constant factor more than a table of the right initial size.
  EXPECT_LT(statistics.registered_bytes, 20000u * 50);
}

TEST_F(HashGrowthTest, ClientsFollowWithoutBeingTold) {
  Start(10);
  ClientThread client(cluster_.get());
  const auto remote = Connect(&client);
  std::vector<rdma::GlobalAddress> records;
  records.push_back(Insert(0));
  ASSERT_EQ(client.Find(remote.get(), uint64_t{0})->record, records[0]);  // learns the current geometry
  for (uint64_t key = 1; key < 5000; ++key) records.push_back(Insert(key));
  for (uint64_t key = 0; key < 5000; ++key) {
    const StatusOr<FindResult> found = client.Find(remote.get(), key);
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(found->record, records[key]) << key;
  }
  // It asks at most once per segment for the new segments, and never for a key.
  EXPECT_LE(client.channel()->counters().calls, 1u + hash::kMaxSegments);
  EXPECT_EQ(remote->statistics().fallbacks, 0u);
  // Once it knows the size, a lookup is one READ, or more where buckets overflow.
  const uint64_t before = remote->statistics().leaves_read;
  for (uint64_t key = 0; key < 5000; ++key) ASSERT_EQ(client.Find(remote.get(), key)->record, records[key]);
  EXPECT_LT(remote->statistics().leaves_read - before, 5000u * 5 / 4);
}

TEST_F(HashGrowthTest, FindManyFollowsToo) {
  Start(10);
  ClientThread client(cluster_.get());
  const auto remote = Connect(&client);
  std::vector<rdma::GlobalAddress> records{Insert(0)};
  ASSERT_TRUE(client.Find(remote.get(), uint64_t{0}).ok());
  for (uint64_t key = 1; key < 3000; ++key) records.push_back(Insert(key));
  std::vector<Key> keys;
  for (uint64_t key = 0; key < 3000; ++key) keys.emplace_back(key);
  std::vector<FindResult> results(keys.size());
  const Status status = client.Await(remote->FindMany(keys, results));
  ASSERT_TRUE(status.ok()) << status;
  for (size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(results[i].record, records[i]);
}

TEST_F(HashGrowthTest, LookupsRaceWithSplits) {
  constexpr uint64_t kKeys = 10000;
  for (const bool adversarial : {false, true}) {
    TearDown();
    Start(10, {.adversarial = adversarial});
    cluster_->StartEpochs();
    std::atomic<uint64_t> published = 0;
    std::thread writer([&] {
      for (uint64_t key = 0; key < kKeys; ++key) {
        Insert(key);
        published.store(key + 1);
      }
    });
    OwnerThread reader(cluster_.get());
    ClientThread client(cluster_.get());
    const auto remote = Connect(&client);
    Random random(5);
    for (uint64_t known = 0; known < kKeys && !HasFailure();) {
      known = published.load();
      if (known == 0) continue;
      const uint64_t key = random.Below(known);
      EpochGuard guard(reader.epoch());
      EpochGuard client_guard(client.epoch());
      const FindResult expected = index_->Find(key);
      EXPECT_FALSE(expected.record.is_null()) << key;
      const StatusOr<FindResult> found = client.Find(remote.get(), key);
      EXPECT_TRUE(found.ok() && found->record == expected.record) << key << ": " << found.status();
      const StatusOr<FindResult> never = client.Find(remote.get(), kKeys + key);
      EXPECT_TRUE(never.ok() && never->record.is_null()) << never.status();
    }
    writer.join();
    ExpectSound();
  }
}

TEST_F(HashGrowthTest, ASplitInvalidatesTheWitnessOfTheBucketItSplits) {
  Start(10);
  EpochGuard guard(owner_->epoch());
  std::vector<std::pair<uint64_t, Witness>> misses;
  for (uint64_t key = 1'000'000; key < 1'000'200; ++key) misses.emplace_back(key, index_->Find(key).witness);
  for (uint64_t key = 0; key < 500; ++key) Insert(key);
  int moved = 0;
  for (const auto& [key, witness] : misses) {
    const FindResult now = index_->Find(key);
    ASSERT_TRUE(now.record.is_null());
    if (now.witness.word == witness.word) continue;
    ++moved;
    EXPECT_FALSE(cluster_->Valid(witness)) << "key " << key << " went to another bucket unnoticed";
  }
  EXPECT_GT(moved, 50);
}

TEST_F(HashGrowthTest, WithoutMemoryToGrowItTakesKeysUntilThereIsNone) {
  // Room for the first doublings, but not for all.
  Start(100, {.bytes_per_node = uint64_t{4} << 20});
  Status status;
  uint64_t inserted = 0;
  while (status.ok()) {
    EpochGuard guard(owner_->epoch());
    auto block = owner_->context().slab->Allocate(RecordBytes(kIntegerKeyBytes, 8));
    status = block.status();
    if (!status.ok()) break;
    owner_->context().slab->Free(*block, RecordBytes(kIntegerKeyBytes, 8));
    status = TryInsert(inserted).status();
    inserted += status.ok();
  }
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_GT(inserted, 1000u);
  ExpectSound();
  EXPECT_EQ(index_->statistics().keys, inserted);
  for (uint64_t key = 0; key < inserted; ++key) ASSERT_FALSE(index_->Find(key).record.is_null());
}

TEST_F(HashGrowthTest, BadOptionsAreNamed) {
  Start(10);
  IndexService* service = cluster_->owner().service.get();
  EXPECT_TRUE(absl::IsInvalidArgument(
      HashIndex::Create(service, 9, {.key_kind = KeyKind::kBytes, .max_key_bytes = kMaxKeyBytes + 1}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(HashIndex::Create(service, 9, {.max_key_bytes = 0}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(HashIndex::Create(service, 9, {.expected_keys = uint64_t{1} << 60}).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(HashIndex::Create(service, 9, {.expected_keys = uint64_t{1} << 32}).status()));
  EXPECT_TRUE(absl::IsAlreadyExists(HashIndex::Create(service, kId, {}).status()));
}

}  // namespace hash_growth_test
}  // namespace gannet::index
