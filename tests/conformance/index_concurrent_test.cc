// Threads of the owner on one index: no key is lost, none appears twice, scans stay in order.
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "tests/conformance/index_suite.h"

namespace gannet::index {
namespace index_concurrent_test {

constexpr int kWriters = 3;
constexpr uint64_t kKeys = 1500;
constexpr int kOperations = 6000;  // per writer

// Keys whose number is a multiple of this exist from the start to the end.
constexpr uint64_t kStable = 5;

// Inserts and removes the keys whose number is `self` modulo kWriters, and compares each with the model.
void ChurnOwnKeys(LocalIndex* index, IndexCluster* cluster, const IndexCase& test, int self, Model* mine) {
  OwnerThread owner(cluster);
  Random random(100 + self);
  for (int i = 0; i < kOperations; ++i) {
    const uint64_t n = random.Below(kKeys / kWriters) * kWriters + self;
    if (n % kStable == 0) continue;
    const OwnedKey key = test.KeyOf(n);
    EpochGuard guard(owner.epoch());
    const auto at = mine->find(key);
    const FindResult found = index->Find(key.view());
    if (at == mine->end()) {
      ASSERT_TRUE(found.record.is_null());
      const rdma::GlobalAddress record = owner.NewRecord(key.view());
      ASSERT_TRUE(index->Insert(owner.context(), key.view(), record, nullptr).ok());
      // The witness of the miss is from before this insert, so it is invalid.
      ASSERT_FALSE(cluster->Valid(found.witness));
      mine->emplace(key, record);
    } else {
      ASSERT_EQ(found.record, at->second);
      ASSERT_TRUE(index->Remove(owner.context(), key.view(), at->second).ok());
      owner.RetireRecord(at->second);
      mine->erase(at);
    }
  }
}

// A walk meets every record of `stable`; in key order and once, if the index keeps an order.
void ExpectWalkMeetsAll(LocalIndex* index, rdma::EpochManager::Participant* epoch, const Model& stable, bool ordered) {
  WalkPosition position;
  std::vector<rdma::GlobalAddress> records;
  for (bool more = true; more;) {
    EpochGuard guard(epoch);  // nested in the caller's epoch, which keeps all records
    more = index->Walk(&position, &records);
  }
  if (ordered) {
    auto at = records.begin();
    for (const auto& [key, record] : stable) {
      at = std::find(at, records.end(), record);
      ASSERT_NE(at, records.end());
    }
  }
  std::sort(records.begin(), records.end(), [](auto a, auto b) { return a.bits() < b.bits(); });
  for (const auto& [key, record] : stable) {
    const auto equal =
        std::equal_range(records.begin(), records.end(), record, [](auto a, auto b) { return a.bits() < b.bits(); });
    ASSERT_GE(equal.second - equal.first, 1);
    ASSERT_TRUE(!ordered || equal.second - equal.first == 1);
  }
}

void ReadStableKeys(LocalIndex* index, IndexCluster* cluster, const IndexCase& test, const Model& stable, bool ordered,
                    const std::atomic<bool>& stop) {
  OwnerThread owner(cluster);
  Random random(7);
  const OwnedKey least = test.KeyOf(0);
  const OwnedKey greatest = test.KeyOf(UINT64_MAX);
  ScanResult result;
  for (int round = 0; !stop.load(std::memory_order_relaxed); ++round) {
    EpochGuard guard(owner.epoch());
    std::vector<OwnedKey> owned;
    for (int i = 0; i < 16; ++i) owned.push_back(test.KeyOf(kStable * random.Below(kKeys / kStable)));
    std::vector<Key> keys;
    for (const OwnedKey& key : owned) keys.push_back(key.view());
    std::vector<FindResult> results(keys.size());
    index->FindMany(keys, results);
    for (size_t i = 0; i < keys.size(); ++i) {
      ASSERT_EQ(results[i].record, stable.at(owned[i]));
      ASSERT_EQ(index->Find(keys[i]).record, stable.at(owned[i]));
    }
    ASSERT_TRUE(index->Find(test.KeyOf(kKeys + random.Below(kKeys)).view()).record.is_null());
    ExpectWalkMeetsAll(index, owner.epoch(), stable, ordered);
    if (!ordered) continue;
    result.Clear();
    const bool reverse = round % 2 == 1;
    ASSERT_TRUE(index->Scan({.from = least.view(), .to = greatest.view(), .reverse = reverse}, &result).ok());
    size_t seen_stable = 0;
    for (size_t i = 0; i < result.entries.size(); ++i) {
      seen_stable += stable.contains(result.entries[i].key);
      if (i == 0) continue;
      const Key previous = result.entries[i - 1].key.view();
      const Key current = result.entries[i].key.view();
      ASSERT_TRUE(reverse ? current < previous : previous < current);
    }
    ASSERT_EQ(seen_stable, stable.size());
  }
}

TEST_P(IndexSuite, ConcurrentWritersAndReadersLoseNothing) {
  Start(kKeys / 10);  // so that it grows during the test
  cluster_->StartEpochs();
  for (uint64_t n = 0; n < kKeys; n += kStable) InsertBoth(KeyOf(n));
  const Model stable = model_;
  std::atomic<bool> stop = false;
  std::vector<Model> models(kWriters);
  std::vector<std::thread> writers;
  std::vector<std::thread> readers;
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back([&, i] { ChurnOwnKeys(index_.get(), cluster_.get(), GetParam(), i, &models[i]); });
  }
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] { ReadStableKeys(index_.get(), cluster_.get(), GetParam(), stable, ordered(), stop); });
  }
  for (std::thread& thread : writers) thread.join();
  stop.store(true);
  for (std::thread& thread : readers) thread.join();
  for (const Model& model : models) model_.insert(model.begin(), model.end());
  ExpectSameAsModel();
}

TEST_P(IndexSuite, OneOfManyInsertersAndOneOfManyRemoversWins) {
  constexpr int kThreads = 4;
  constexpr uint64_t kContended = 300;
  Start(kContended);
  std::atomic<uint64_t> inserted = 0;
  std::atomic<uint64_t> removed = 0;
  std::atomic<uint64_t> other_errors = 0;
  const auto fight = [&](int self) {
    OwnerThread owner(cluster_.get());
    Random random(self);
    for (int i = 0; i < 4000; ++i) {
      const OwnedKey key = KeyOf(random.Below(kContended));
      EpochGuard guard(owner.epoch());
      const FindResult found = index_->Find(key.view());
      if (found.record.is_null()) {
        const rdma::GlobalAddress record = owner.NewRecord(key.view());
        const Status status = index_->Insert(owner.context(), key.view(), record, nullptr).status();
        inserted += status.ok();
        other_errors += !status.ok() && !absl::IsAlreadyExists(status);
        if (!status.ok()) owner.RetireRecord(record);
      } else {
        const Status status = index_->Remove(owner.context(), key.view(), found.record).status();
        removed += status.ok();
        other_errors += !status.ok() && !absl::IsNotFound(status);
        if (status.ok()) owner.RetireRecord(found.record);
      }
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(fight, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(other_errors, 0u);
  EXPECT_EQ(index_->statistics().keys, inserted - removed);
  const Status structure = index_->CheckStructure();
  EXPECT_TRUE(structure.ok()) << structure;
}

// One thread appends keys in ascending order, as orders of a district arrive. A scan whose witnesses are still valid
// afterwards saw one state of the index: it has all keys up to some key and none beyond.
TEST_P(IndexSuite, ScansSeeInsertsInTheirOrder) {
  if (!ordered()) GTEST_SKIP() << "not an ordered kind";
  Start(1000);
  constexpr uint64_t kAppended = 3000;
  // Byte keys of one length sort as their numbers.
  const auto appended = [](uint64_t n) { return 21 * (1000000 + n); };
  std::thread writer([&] {
    OwnerThread owner(cluster_.get());
    for (uint64_t n = 0; n < kAppended; ++n) MustInsert(&owner, KeyOf(appended(n)));
  });
  const OwnedKey from = KeyOf(appended(0));
  const OwnedKey to = KeyOf(appended(kAppended));
  ScanResult result;
  while (result.entries.size() < kAppended && !HasFailure()) {
    result.Clear();
    EpochGuard guard(main_->epoch());
    EXPECT_TRUE(index_->Scan({.from = from.view(), .to = to.view()}, &result).ok());
    if (!HeldWitnesses(cluster_.get(), result.witnesses).Valid()) {
      result.Clear();
      continue;
    }
    for (size_t i = 0; i < result.entries.size(); ++i) {
      if (result.entries[i].key.view() == KeyOf(appended(i)).view()) continue;
      ADD_FAILURE() << "entry " << i << " is " << result.entries[i].key.view().ToString();
      break;
    }
  }
  writer.join();
}

}  // namespace index_concurrent_test
}  // namespace gannet::index
