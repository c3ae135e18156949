// The client's side of an index: compared with the model, on a friendly and on an adversarial fabric, and racing with
// writers at the owner.
#include <atomic>
#include <thread>
#include <vector>

#include "tests/conformance/index_suite.h"

namespace gannet::index {
namespace index_remote_test {

constexpr uint64_t kKeys = 2000;

// Checks a scan as its reader gets it: entries are keys and addresses, all verified by the index.
void ExpectRemoteScan(ClientThread* client, RemoteIndex* remote, const ScanRange& range,
                      const std::vector<Entry>& expected) {
  ScanResult result;
  const Status status = client->Await(remote->Scan(range, &result));
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_EQ(result.entries.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(result.entries[i].key.view(), expected[i].key.view());
    ASSERT_EQ(result.entries[i].record, expected[i].record);
  }
  for (const Witness& witness : result.witnesses) ASSERT_TRUE(client->Valid(witness));
}

TEST_P(IndexSuite, RemoteLookupsAgreeWithTheModel) {
  if (!has_clients()) GTEST_SKIP() << "a kind without clients";
  for (const bool adversarial : {false, true}) {
    TearDown();
    model_.clear();
    Start(kKeys, {.adversarial = adversarial});
    ClientThread client(cluster_.get());
    const auto remote = Connect(&client);
    Random random(21);
    for (int round = 0; round < 40; ++round) {
      for (int i = 0; i < 100; ++i) {
        const OwnedKey key = KeyOf(random.Below(kKeys));
        if (!model_.contains(key)) {
          InsertBoth(key);
        } else if (random.OneIn(2)) {
          RemoveBoth(key);
        }
      }
      cluster_->PassGracePeriod();
      main_->epoch()->Collect();
      EpochGuard guard(&client);
      for (int i = 0; i < 100; ++i) {
        const OwnedKey key = KeyOf(random.Below(kKeys));
        const StatusOr<FindResult> found = client.Find(remote.get(), key.view());
        ASSERT_TRUE(found.ok()) << found.status();
        const auto at = model_.find(key);
        ASSERT_EQ(found->record, at == model_.end() ? rdma::GlobalAddress() : at->second) << key.view().ToString();
        ASSERT_TRUE(at != model_.end() || client.Valid(found->witness));
      }
    }
    EXPECT_GT(remote->statistics().lookups, 0u);
  }
}

TEST_P(IndexSuite, RemoteFindManyAgreesWithTheModel) {
  if (!has_clients()) GTEST_SKIP() << "a kind without clients";
  for (const bool adversarial : {false, true}) {
    TearDown();
    model_.clear();
    Start(kKeys, {.adversarial = adversarial});
    for (uint64_t n = 0; n < kKeys; n += 2) InsertBoth(KeyOf(n));
    ClientThread client(cluster_.get());
    const auto remote = Connect(&client);
    Random random(22);
    EpochGuard guard(&client);
    for (const size_t count : {0, 1, 2, 15, 16, 17, 33, 100}) {
      std::vector<OwnedKey> owned;
      for (size_t i = 0; i < count; ++i) owned.push_back(KeyOf(random.Below(kKeys)));
      std::vector<Key> keys;
      for (const OwnedKey& key : owned) keys.push_back(key.view());
      std::vector<FindResult> results(count);
      const Status status = client.Await(remote->FindMany(keys, results));
      ASSERT_TRUE(status.ok()) << status;
      for (size_t i = 0; i < count; ++i) {
        const StatusOr<FindResult> found = client.Settle(remote.get(), keys[i], results[i]);
        ASSERT_TRUE(found.ok()) << found.status();
        const auto at = model_.find(owned[i]);
        ASSERT_EQ(found->record, at == model_.end() ? rdma::GlobalAddress() : at->second);
        ASSERT_TRUE(at != model_.end() || client.Valid(found->witness));
      }
    }
  }
}

TEST_P(IndexSuite, RemoteChangesAreTheOwners) {
  if (!has_clients()) GTEST_SKIP() << "a kind without clients";
  Start(kKeys);
  ClientThread client(cluster_.get());
  const auto remote = Connect(&client);
  Random random(23);
  for (int round = 0; round < 2000; ++round) {
    const OwnedKey key = KeyOf(random.Below(kKeys / 4));
    const auto at = model_.find(key);
    EpochGuard guard(&client);
    if (at == model_.end()) {
      const StatusOr<FindResult> miss = client.Find(remote.get(), key.view());
      ASSERT_TRUE(miss.ok() && miss->record.is_null());
      const rdma::GlobalAddress record = main_->NewRecord(key.view());
      const StatusOr<Change> change = client.Await(remote->Insert(key.view(), record));
      ASSERT_TRUE(change.ok()) << change.status();
      if (!ListsNothing(*change)) {
        ExpectSound(*change);
        ASSERT_TRUE(Changes(*change, miss->witness)) << key.view().ToString();
      }
      model_.emplace(key, record);
      ASSERT_TRUE(absl::IsAlreadyExists(client.Await(remote->Insert(key.view(), record)).status()));
    } else {
      const StatusOr<Change> change = client.Await(remote->Remove(key.view(), at->second));
      ASSERT_TRUE(change.ok()) << change.status();
      if (!ListsNothing(*change)) ExpectSound(*change);
      ASSERT_TRUE(absl::IsNotFound(client.Await(remote->Remove(key.view(), at->second)).status()));
      main_->RetireRecord(at->second);
      model_.erase(at);
    }
  }
  ExpectSameAsModel();
}

TEST_P(IndexSuite, RemoteScansAgreeWithTheModel) {
  if (!has_clients()) GTEST_SKIP() << "a kind without clients";
  for (const bool adversarial : {false, true}) {
    TearDown();
    model_.clear();
    Start(kKeys, {.adversarial = adversarial});
    ClientThread client(cluster_.get());
    const auto remote = Connect(&client);
    if (!ordered()) {
      ScanResult result;
      const OwnedKey key = KeyOf(1);
      EXPECT_TRUE(absl::IsUnimplemented(client.Await(remote->Scan({.from = key.view(), .to = key.view()}, &result))));
      return;
    }
    Random random(24);
    for (int round = 0; round < 200; ++round) {
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
      EpochGuard guard(&client);
      ExpectRemoteScan(&client, remote.get(), range, ModelScan(range));
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(IndexSuite, WitnessesOfRemoteScansCatchPhantoms) {
  if (!has_clients()) GTEST_SKIP() << "a kind without clients";
  if (!ordered()) GTEST_SKIP() << "not an ordered kind";
  Start(kKeys);
  ClientThread client(cluster_.get());
  const auto remote = Connect(&client);
  Random random(25);
  for (uint64_t n = 0; n < kKeys; n += 3) InsertBoth(KeyOf(n));
  for (int round = 0; round < 300; ++round) {
    const RandomRange ends(GetParam(), kKeys, &random);
    EpochGuard guard(&client);
    ScanResult result;
    ASSERT_TRUE(client.Await(remote->Scan(ends.range(), &result)).ok());
    const HeldWitnesses held(cluster_.get(), result.witnesses);
    ASSERT_TRUE(held.Valid());
    OwnedKey key = KeyOf(random.Below(kKeys));
    if (key.view() < ends.from.view() || ends.to.view() < key.view()) key = ends.to;
    if (model_.contains(key)) {
      RemoveBoth(key);
    } else {
      InsertBoth(key);
    }
    ASSERT_FALSE(held.Valid()) << key.view().ToString();
  }
}

// The owner's threads insert and remove. Meanwhile clients find stable keys (multiples of 4), do not find keys that
// never existed, and their scans have no key twice and every stable one.
//
// The writer must not get far ahead of the reader: removed memory is not free again before a reader in an older epoch
// leaves it, and the reader may have no CPU for seconds.
TEST_P(IndexSuite, RemoteReadersRaceWithLocalWriters) {
  if (!has_clients()) GTEST_SKIP() << "a kind without clients";
  constexpr int kMostAhead = 5000;  // changes
  constexpr int kPerRound = 200;
  for (const bool adversarial : {false, true}) {
    TearDown();
    model_.clear();
    Start(kKeys / 10, {.adversarial = adversarial});
    cluster_->StartEpochs();
    for (uint64_t n = 0; n < kKeys; n += 4) InsertBoth(KeyOf(n));
    const Model stable = model_;
    std::atomic<bool> stop = false;
    std::atomic<int> changes = 0;
    std::atomic<int> rounds = 0;
    std::thread writer([&] {
      OwnerThread owner(cluster_.get());
      Model mine;
      Random random(26);
      while (!stop.load(std::memory_order_relaxed)) {
        if (changes > kMostAhead + kPerRound * rounds) {
          YieldThread();
          continue;
        }
        const uint64_t n = random.Below(kKeys);
        if (n % 4 == 0) continue;
        const OwnedKey key = KeyOf(n);
        const auto at = mine.find(key);
        if (at == mine.end()) {
          rdma::GlobalAddress record;
          MustInsert(&owner, key, &record);
          mine.emplace(key, record);
        } else {
          MustRemove(&owner, key, at->second);
          mine.erase(at);
        }
        ++changes;
      }
    });
    ClientThread client(cluster_.get());
    const auto remote = Connect(&client);
    Random random(27);
    const OwnedKey least = KeyOf(0);
    const OwnedKey greatest = KeyOf(UINT64_MAX);
    for (int round = 0; (round < 500 || changes < 1500) && !HasFailure(); ++round) {
      rounds = round;
      EpochGuard guard(&client);
      const OwnedKey present = KeyOf(4 * random.Below(kKeys / 4));
      const StatusOr<FindResult> found = client.Find(remote.get(), present.view());
      EXPECT_TRUE(found.ok()) << found.status();
      EXPECT_TRUE(found.ok() && found->record == stable.at(present));
      const OwnedKey never = KeyOf(kKeys + random.Below(kKeys));
      const StatusOr<FindResult> missed = client.Find(remote.get(), never.view());
      EXPECT_TRUE(missed.ok() && missed->record.is_null());
      if (!ordered() || round % 20 != 0) continue;
      ScanResult result;
      const bool reverse = random.OneIn(2);
      const Status status =
          client.Await(remote->Scan({.from = least.view(), .to = greatest.view(), .reverse = reverse}, &result));
      EXPECT_TRUE(status.ok()) << status;
      size_t seen_stable = 0;
      for (size_t i = 0; i < result.entries.size(); ++i) {
        seen_stable += stable.contains(result.entries[i].key);
        if (i == 0) continue;
        const Key previous = result.entries[i - 1].key.view();
        const Key current = result.entries[i].key.view();
        EXPECT_TRUE(reverse ? current < previous : previous < current);
      }
      EXPECT_EQ(seen_stable, stable.size());
    }
    stop.store(true);
    writer.join();
  }
}

// Two clients insert and remove through the owner, and both look keys up.
TEST_P(IndexSuite, RemoteWritersAgree) {
  if (!has_clients()) GTEST_SKIP() << "a kind without clients";
  Start(kKeys / 10);
  cluster_->StartEpochs();
  std::vector<Model> models(2);
  const auto work = [&](uint64_t self) {
    OwnerThread records(cluster_.get());  // in place of the owner's allocation of records
    ClientThread client(cluster_.get());
    const auto remote = Connect(&client);
    Random random(self);
    Model& mine = models[self];
    for (int i = 0; i < 1500; ++i) {
      const OwnedKey key = KeyOf(2 * random.Below(kKeys / 8) + self);
      EpochGuard guard(&client);
      const StatusOr<FindResult> found = client.Find(remote.get(), key.view());
      ASSERT_TRUE(found.ok()) << found.status();
      const auto at = mine.find(key);
      ASSERT_EQ(found->record, at == mine.end() ? rdma::GlobalAddress() : at->second);
      if (at == mine.end()) {
        const rdma::GlobalAddress record = records.NewRecord(key.view());
        ASSERT_TRUE(client.Await(remote->Insert(key.view(), record)).ok());
        mine.emplace(key, record);
      } else {
        ASSERT_TRUE(client.Await(remote->Remove(key.view(), at->second)).ok());
        records.RetireRecord(at->second);
        remote->Forget(key.view());
        mine.erase(at);
      }
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  for (const Model& model : models) model_.insert(model.begin(), model.end());
  ExpectSameAsModel();
}

TEST_P(IndexSuite, AnUnknownIndexIsAnError) {
  if (!has_clients()) GTEST_SKIP() << "a kind without clients";
  Start(100);
  ClientThread client(cluster_.get());
  auto remote = client.Connect(kId + 1);
  ASSERT_TRUE(remote.ok()) << remote.status();
  const OwnedKey key = KeyOf(1);
  EXPECT_FALSE(client.Await((*remote)->Find(key.view())).ok());
  EXPECT_FALSE(client.Await((*remote)->Insert(key.view(), rdma::GlobalAddress(0, 4096))).ok());
  EXPECT_FALSE(client.Await((*remote)->Remove(key.view(), rdma::GlobalAddress(0, 4096))).ok());
}

TEST_P(IndexSuite, ADeadOwnerIsUnavailable) {
  if (!has_clients()) GTEST_SKIP() << "a kind without clients";
  Start(100);
  InsertBoth(KeyOf(1));
  ClientThread client(cluster_.get());
  const auto remote = Connect(&client);
  const OwnedKey key = KeyOf(1);
  ASSERT_TRUE(client.Find(remote.get(), key.view()).ok());
  cluster_->KillOwner();
  const OwnedKey other = KeyOf(2);
  EXPECT_TRUE(absl::IsUnavailable(client.Await(remote->Find(other.view())).status()));
  EXPECT_FALSE(client.Await(remote->Insert(other.view(), rdma::GlobalAddress(0, 4096))).ok());
}

}  // namespace index_remote_test
}  // namespace gannet::index
