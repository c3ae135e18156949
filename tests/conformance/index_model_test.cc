// An index compared with std::map, in one thread.
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "tests/conformance/index_suite.h"

namespace gannet::index {
namespace index_model_test {

TEST_P(IndexSuite, AnEmptyIndexHasNothing) {
  Start(100);
  ExpectSameAsModel();
  EpochGuard guard(main_->epoch());
  for (const uint64_t n : {uint64_t{0}, uint64_t{7}, UINT64_MAX}) {
    const OwnedKey key = KeyOf(n);
    const FindResult found = index_->Find(key.view());
    EXPECT_TRUE(found.record.is_null());
    EXPECT_FALSE(found.witness.word.is_null());
    EXPECT_EQ(found.witness.seen & rdma::kLockBit, 0u);
  }
}

TEST_P(IndexSuite, InsertFailsIfPresent) {
  Start(100);
  const OwnedKey key = KeyOf(42);
  InsertBoth(key);
  EpochGuard guard(main_->epoch());
  rdma::GlobalAddress existing;
  const rdma::GlobalAddress other = main_->NewRecord(key.view());
  EXPECT_TRUE(absl::IsAlreadyExists(index_->Insert(main_->context(), key.view(), other, &existing).status()));
  EXPECT_EQ(existing, model_.at(key));
  EXPECT_TRUE(absl::IsAlreadyExists(index_->Insert(main_->context(), key.view(), other, nullptr).status()));
  EXPECT_EQ(index_->Find(key.view()).record, model_.at(key));
}

TEST_P(IndexSuite, RemoveNeedsTheKeyAndItsRecord) {
  Start(100);
  const OwnedKey key = KeyOf(42);
  const OwnedKey absent = KeyOf(43);
  InsertBoth(key);
  EpochGuard guard(main_->epoch());
  const rdma::GlobalAddress other = main_->NewRecord(key.view());
  EXPECT_TRUE(absl::IsNotFound(index_->Remove(main_->context(), key.view(), other).status()));
  EXPECT_TRUE(absl::IsNotFound(index_->Remove(main_->context(), absent.view(), model_.at(key)).status()));
  EXPECT_EQ(index_->Find(key.view()).record, model_.at(key));
  EXPECT_TRUE(index_->Remove(main_->context(), key.view(), model_.at(key)).ok());
  EXPECT_TRUE(index_->Find(key.view()).record.is_null());
  EXPECT_TRUE(absl::IsNotFound(index_->Remove(main_->context(), key.view(), model_.at(key)).status()));
}

TEST_P(IndexSuite, TakesExtremeKeys) {
  Start(100);
  for (const uint64_t n : {UINT64_MAX, uint64_t{0}, UINT64_MAX - 1, uint64_t{1}}) InsertBoth(KeyOf(n));
  ExpectSameAsModel();
  for (const uint64_t n : {uint64_t{0}, UINT64_MAX}) RemoveBoth(KeyOf(n));
  ExpectSameAsModel();
}

TEST_P(IndexSuite, RandomOperationsAgreeWithTheModel) {
  constexpr uint64_t kKeys = 3000;
  Start(kKeys);
  Random random(1);
  for (int phase = 0; phase < 6; ++phase) {
    // Phases mostly insert or mostly remove, so that the structure grows, shrinks to almost nothing, and grows again.
    const uint64_t insert_percent = phase % 2 == 0 ? 80 : 15;
    for (int i = 0; i < 4000; ++i) {
      const OwnedKey key = KeyOf(random.Below(kKeys));
      const bool present = model_.contains(key);
      const bool insert = random.Below(100) < insert_percent;
      if (insert && !present) InsertBoth(key);
      if (!insert && present) RemoveBoth(key);
      EpochGuard guard(main_->epoch());
      ASSERT_EQ(index_->Find(key.view()).record.is_null(), !model_.contains(key));
    }
    ExpectSameAsModel();
    cluster_->PassGracePeriod();
  }
}

TEST_P(IndexSuite, GrowsFarBeyondWhatWasExpected) {
  Start(64);
  Random random(2);
  std::set<uint64_t> numbers;
  while (numbers.size() < 20000) numbers.insert(random());
  std::vector<uint64_t> order(numbers.begin(), numbers.end());
  for (size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random.Below(i + 1)]);
  for (const uint64_t n : order) InsertBoth(KeyOf(n));
  ExpectSameAsModel();
}

TEST_P(IndexSuite, FindManyMixesHitsAndMisses) {
  Start(2000);
  for (uint64_t n = 0; n < 2000; n += 2) InsertBoth(KeyOf(n));
  EpochGuard guard(main_->epoch());
  Random random(3);
  for (const size_t count : {0, 1, 2, 15, 16, 17, 100}) {
    std::vector<OwnedKey> owned;
    for (size_t i = 0; i < count; ++i) owned.push_back(KeyOf(random.Below(2000)));
    std::vector<Key> keys;
    for (const OwnedKey& key : owned) keys.push_back(key.view());
    std::vector<FindResult> results(count);
    index_->FindMany(keys, results);
    for (size_t i = 0; i < count; ++i) {
      const FindResult one = index_->Find(keys[i]);
      EXPECT_EQ(results[i].record, one.record);
      EXPECT_EQ(results[i].witness.word, one.witness.word);
      EXPECT_EQ(results[i].witness.seen, one.witness.seen);
    }
  }
}

TEST_P(IndexSuite, BulkLoadThenOperations) {
  for (const double fill : {0.5, 1.0}) {
    TearDown();
    model_.clear();
    Start(5000);
    {
      EpochGuard guard(main_->epoch());
      for (uint64_t n = 0; n < 5000; ++n) {
        const OwnedKey key = KeyOf(3 * n);
        model_.emplace(key, main_->NewRecord(key.view()));
      }
      std::vector<LoadEntry> entries;
      for (const auto& [key, record] : model_) entries.push_back({key.view(), record});
      const Status loaded = index_->BulkLoad(main_->context(), entries, fill);
      ASSERT_TRUE(loaded.ok()) << loaded;
    }
    ExpectSameAsModel();
    Random random(4);
    for (int i = 0; i < 3000; ++i) {
      const OwnedKey key = KeyOf(random.Below(15000));
      if (model_.contains(key)) {
        RemoveBoth(key);
      } else {
        InsertBoth(key);
      }
    }
    ExpectSameAsModel();
  }
}

TEST_P(IndexSuite, BulkLoadOfNothing) {
  Start(100);
  {
    EpochGuard guard(main_->epoch());
    ASSERT_TRUE(index_->BulkLoad(main_->context(), {}, 0.5).ok());
  }
  InsertBoth(KeyOf(5));
  ExpectSameAsModel();
}

TEST_P(IndexSuite, ScansAgreeWithTheModel) {
  if (!ordered()) {
    Start(10);
    ScanResult result;
    const OwnedKey key = KeyOf(1);
    EXPECT_TRUE(absl::IsUnimplemented(index_->Scan({.from = key.view(), .to = key.view()}, &result)));
    return;
  }
  constexpr uint64_t kKeys = 4000;
  Start(kKeys);
  Random random(5);
  for (int round = 0; round < 400; ++round) {
    for (int i = 0; i < 20; ++i) {
      const OwnedKey key = KeyOf(random.Below(kKeys));
      if (!model_.contains(key)) {
        InsertBoth(key);
      } else if (random.OneIn(3)) {
        RemoveBoth(key);
      }
    }
    const RandomRange ends(GetParam(), kKeys, &random);
    ScanRange range = ends.range();
    range.reverse = random.OneIn(2);
    if (random.OneIn(2)) range.limit = random.Below(50);
    EpochGuard guard(main_->epoch());
    ScanResult result;
    const Status status = index_->Scan(range, &result);
    ASSERT_TRUE(status.ok()) << status;
    ExpectEntries(ModelScan(range), result.entries);
    ExpectScansRecords(range);
    if (HasFatalFailure()) return;
  }
}

TEST_P(IndexSuite, ScanOfAnEmptyRange) {
  if (!ordered()) GTEST_SKIP() << "not an ordered kind";
  Start(100);
  const OwnedKey low = KeyOf(10);
  const OwnedKey high = KeyOf(13);  // same prefix as 10 in byte keys
  for (const bool filled : {false, true}) {
    if (filled) InsertBoth(KeyOf(16));
    EpochGuard guard(main_->epoch());
    for (const bool reverse : {false, true}) {
      ScanResult result;
      ASSERT_TRUE(index_->Scan({.from = low.view(), .to = high.view(), .reverse = reverse}, &result).ok());
      EXPECT_TRUE(result.entries.empty());
      EXPECT_FALSE(result.witnesses.empty());
      // With the ends exchanged the range is empty, which is not an error.
      ASSERT_TRUE(index_->Scan({.from = high.view(), .to = low.view(), .reverse = reverse}, &result).ok());
      EXPECT_TRUE(result.entries.empty());
    }
  }
}

TEST_P(IndexSuite, ScanAppends) {
  if (!ordered()) GTEST_SKIP() << "not an ordered kind";
  Start(100);
  for (uint64_t n = 0; n < 30; ++n) InsertBoth(KeyOf(n));
  EpochGuard guard(main_->epoch());
  const OwnedKey a = KeyOf(6);
  const OwnedKey b = KeyOf(9);
  ScanResult result;
  ASSERT_TRUE(index_->Scan({.from = a.view(), .to = a.view()}, &result).ok());
  const size_t witnesses = result.witnesses.size();
  ASSERT_TRUE(index_->Scan({.from = b.view(), .to = b.view()}, &result).ok());
  ASSERT_EQ(result.entries.size(), 2u);
  EXPECT_EQ(result.entries[0].key.view(), a.view());
  EXPECT_EQ(result.entries[1].key.view(), b.view());
  EXPECT_GT(result.witnesses.size(), witnesses);
}

}  // namespace index_model_test
}  // namespace gannet::index
