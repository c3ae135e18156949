// XCache: a client with a stale cache. Its answers must be right; its counters show how it got them.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "base/random.h"
#include "base/thread.h"
#include "gtest/gtest.h"
#include "index/xstore/rpc/messages.h"
#include "index/xstore/xstore.h"
#include "tests/index/record_helper.h"
#include "tests/index/training.h"

namespace gannet::index {
namespace xstore_client_test {

class XStoreClientTest : public testing::Test {
 protected:
  static constexpr IndexId kId = 5;

  void Start(const XStoreOptions& options = {}, bool adversarial = false) {
    cluster_ = std::make_unique<IndexCluster>(IndexCluster::Options{.adversarial = adversarial});
    RegisterXStoreMethods(cluster_->owner().service.get());
    auto index = XStore::Create(cluster_->owner().service.get(), kId, options);
    ASSERT_TRUE(index.ok()) << index.status();
    index_ = std::move(*index);
    cluster_->Serve();
    owner_ = std::make_unique<OwnerThread>(cluster_.get());
    client_ = std::make_unique<ClientThread>(cluster_.get());
  }
  void TearDown() override {
    cluster_->owner().node->Shutdown();
    client_.reset();
    owner_.reset();
    index_.reset();
    cluster_.reset();
  }

  void Insert(uint64_t key) {
    EpochGuard guard(owner_->epoch());
    const auto change = index_->Insert(owner_->context(), key, FakeRecord(key), nullptr);
    ASSERT_TRUE(change.ok()) << change.status();
    keys_.insert(key);
  }
  void Remove(uint64_t key) {
    EpochGuard guard(owner_->epoch());
    const auto change = index_->Remove(owner_->context(), key, FakeRecord(key));
    ASSERT_TRUE(change.ok()) << change.status();
    keys_.erase(key);
  }
  std::unique_ptr<RemoteIndex> Connect(const XCacheOptions& options = {}) {
    auto remote = ConnectXStore(client_->channel(), 0, kId, {}, options);
    EXPECT_TRUE(remote.ok()) << remote.status();
    return std::move(*remote);
  }
  // Makes the client learn of a model that is up to date.
  void Train(RemoteIndex* remote) {
    ExpectFind(remote, 0);
    WaitForTraining();
    ExpectFind(remote, 0);
    ExpectFind(remote, 0);
  }
  void WaitForTraining() { index::WaitForTraining(index_.get()); }
  void PassGracePeriod() {
    cluster_->PassGracePeriod();
    owner_->epoch()->Collect();
  }

  void ExpectFind(RemoteIndex* remote, uint64_t key) {
    EpochGuard guard(client_->epoch());
    const StatusOr<FindResult> found = client_->Await(remote->Find(key));
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(found->record, keys_.contains(key) ? FakeRecord(key) : rdma::GlobalAddress()) << key;
    ASSERT_TRUE(keys_.contains(key) || client_->Valid(found->witness)) << key;
  }
  void ExpectScan(RemoteIndex* remote, uint64_t from, uint64_t to, bool reverse = false, size_t limit = SIZE_MAX) {
    EpochGuard guard(client_->epoch());
    ScanResult result;
    const Status status =
        client_->Await(remote->Scan({.from = from, .to = to, .reverse = reverse, .limit = limit}, &result));
    ASSERT_TRUE(status.ok()) << status;
    std::vector<uint64_t> expected(keys_.lower_bound(from), keys_.upper_bound(to));
    if (reverse) std::reverse(expected.begin(), expected.end());
    if (expected.size() > limit) expected.resize(limit);
    std::vector<uint64_t> got;
    for (const Entry& entry : result.entries) {
      got.push_back(entry.key.integer());
      ASSERT_EQ(entry.record, FakeRecord(entry.key.integer()));
    }
    ASSERT_EQ(got, expected) << "from " << from << " to " << to;
    ASSERT_FALSE(result.witnesses.empty());
  }
  rdma::VerbCounters Counters() { return client_->channel()->counters(); }

  std::unique_ptr<IndexCluster> cluster_;
  std::unique_ptr<XStore> index_;
  std::unique_ptr<OwnerThread> owner_;
  std::unique_ptr<ClientThread> client_;
  std::set<uint64_t> keys_;
};

// The client READs only the lines where the model predicts a key; for an absent key it READs the whole leaf.
TEST_F(XStoreClientTest, APresentKeyTakesALineOrTwoOfItsLeaf) {
  Start();
  for (uint64_t i = 0; i < 10000; ++i) Insert(i * 10);
  for (const XCacheMode mode : {XCacheMode::kWhole, XCacheMode::kModelOnly}) {
    const auto remote = Connect({.mode = mode});
    Train(remote.get());
    for (uint64_t key = 0; key < 100000; key += 10) ExpectFind(remote.get(), key);
    const rdma::VerbCounters before = Counters();
    const uint64_t tables = mode == XCacheMode::kWhole ? 0 : 2 * 8;  // limit of bytes for entries
    for (uint64_t key = 0; key < 100000; key += 10) ExpectFind(remote.get(), key);
    const rdma::VerbCounters spent = Counters() - before;
    EXPECT_EQ(spent.calls, 0u);
    EXPECT_LE(spent.bytes_in, 10000 * (2 * kLineBytes + tables));
    EXPECT_LE(spent.round_trips, (tables == 0 ? 1u : 2u) * 10000u);
  }
}

TEST_F(XStoreClientTest, KeysThatCameOrWentSinceTheTrainingAreFoundAndMissed) {
  Start();
  for (uint64_t i = 0; i < 5000; ++i) Insert(i * 100);
  const auto remote = Connect();
  Train(remote.get());
  const std::set<uint64_t> trained = keys_;
  for (const uint64_t key : trained) ExpectFind(remote.get(), key);
  WaitForTraining();
  Random random(11);
  for (int round = 0; round < 200; ++round) {
    // The keys looked up in between are where the model predicts them, so slots stay trusted, and are READ first.
    for (int i = 0; i < 40; ++i)
      ExpectFind(remote.get(), *std::next(trained.begin(), static_cast<int>(random.Below(50))));
    const uint64_t leaf = 100 + random.Below(200);  // of 16 keys
    const uint64_t gone = (leaf * 16 + random.Below(16)) * 100;
    if (!keys_.contains(gone)) continue;
    Remove(gone);
    ExpectFind(remote.get(), gone);
    const uint64_t moved = (leaf * 16 + 15) * 100;  // into the slot of the removed key
    ExpectFind(remote.get(), moved);
    if (!keys_.contains(gone + 1)) Insert(gone + 1);
    ExpectFind(remote.get(), gone + 1);
    if (!keys_.contains(gone)) Insert(gone);  // the leaf splits: 17 keys
    ExpectFind(remote.get(), gone);
    ExpectFind(remote.get(), moved);
    ExpectFind(remote.get(), leaf * 16 * 100 + 50);
  }
  EpochGuard guard(owner_->epoch());
  EXPECT_TRUE(index_->CheckStructure().ok()) << index_->CheckStructure();
}

// Many absent keys: whole leaves are READ at once, until keys are found again where they are predicted.
TEST_F(XStoreClientTest, ManyAbsentKeysDoNotTakeTwoBatches) {
  Start();
  for (uint64_t i = 0; i < 10000; ++i) Insert(i * 10);
  const auto remote = Connect();
  Train(remote.get());
  for (uint64_t key = 0; key < 100000; key += 10) ExpectFind(remote.get(), key);
  const auto batches = [&](uint64_t offset) {
    const rdma::VerbCounters before = Counters();
    for (uint64_t key = offset; key < 10000; key += 10) ExpectFind(remote.get(), key);
    return (Counters() - before).round_trips - (offset == 0 ? 0 : 1000);  // without the READ that validates a witness
  };
  const auto bytes = [&] {
    const rdma::VerbCounters before = Counters();
    for (uint64_t key = 0; key < 10000; key += 10) ExpectFind(remote.get(), key);
    return (Counters() - before).bytes_in;
  };
  EXPECT_LE(bytes(), 1000 * 2 * kLineBytes);
  EXPECT_LE(batches(5), 1020u);
  EXPECT_EQ(batches(0), 1000u);
  EXPECT_LE(bytes(), 1000 * 2 * kLineBytes);
}

TEST_F(XStoreClientTest, AClientWithoutACacheOnlyCalls) {
  Start();
  for (uint64_t i = 0; i < 2000; ++i) Insert(i * 10);
  const auto other = Connect();
  Train(other.get());  // there is a model, which the client that only calls does not ask for
  const auto remote = Connect({.by_call = true});
  const rdma::VerbCounters before = Counters();
  for (uint64_t key = 0; key < 20000; key += 100) ExpectFind(remote.get(), key);
  ExpectScan(remote.get(), 500, 15000);
  const rdma::VerbCounters spent = Counters() - before;
  EXPECT_EQ(spent.reads, 0u);
  EXPECT_GE(spent.calls, 201u);
  EXPECT_LT(remote->statistics().cache_bytes, 4096u);
}

// At the same time the epoch thread unlinks the empty leaves, and reports each to the owner of the models.
TEST_F(XStoreClientTest, AnIndexIsDestroyedWhileItsEmptyLeavesAreUnlinked) {
  for (int round = 0; round < 20; ++round) {
    Start();
    for (uint64_t i = 0; i < 2000; ++i) Insert(i * 10);
    auto remote = Connect();
    Train(remote.get());
    for (uint64_t i = 0; i < 2000; ++i) Remove(i * 10);
    remote.reset();
    SleepForNanos(static_cast<uint64_t>(round) * 100'000);
    TearDown();
  }
  Start();
}

TEST_F(XStoreClientTest, ALookupIsOneBatchOfReadsOnceTheCacheIsWarm) {
  Start();
  for (uint64_t i = 0; i < 10000; ++i) Insert(i * 10);
  const std::vector<std::pair<XCacheMode, uint64_t>> batches = {
      {XCacheMode::kWhole, 1}, {XCacheMode::kModelOnly, 2}, {XCacheMode::kTopOnly, 3}};
  for (const auto& [mode, expected] : batches) {
    const auto remote = Connect({.mode = mode});
    Train(remote.get());
    for (uint64_t key = 0; key < 100000; key += 50) ExpectFind(remote.get(), key);
    const rdma::VerbCounters before = Counters();
    const ClientStatistics then = remote->statistics();
    uint64_t misses = 0;  // ExpectFind validates the witness of each miss by one READ
    for (uint64_t key = 0; key < 100000; key += 7) {
      ExpectFind(remote.get(), key);
      misses += keys_.contains(key) ? 0 : 1;
    }
    const rdma::VerbCounters spent = Counters() - before;
    const uint64_t lookups = remote->statistics().lookups - then.lookups;
    EXPECT_EQ(spent.calls, 0u);
    // A few more, until the client notices that most keys are absent.
    EXPECT_GE(spent.round_trips, expected * lookups + misses);
    EXPECT_LE(spent.round_trips, expected * lookups + misses + 20);
    EXPECT_EQ(remote->statistics().one_sided - then.one_sided, lookups);
    EXPECT_EQ(remote->statistics().fallbacks, then.fallbacks);
  }
}

// Estimates follow what the cache has: the model, then the tables.
TEST_F(XStoreClientTest, EstimatesKnowWhatIsCached) {
  Start();
  for (uint64_t key = 0; key < 20'000; ++key) Insert(key);
  const auto remote = Connect();
  const Key key(uint64_t{4321});
  const std::span<const Key> one(&key, 1);
  ReadEstimate estimate = remote->Estimate(one);
  EXPECT_EQ(estimate.calls, 2);  // for the model, and because there is none
  EXPECT_EQ(estimate.lasting_calls, 1);
  EXPECT_EQ(estimate.postings, 0);
  Train(remote.get());

  // A sub-model that was not used yet takes two more postings, for its line and its table.
  rdma::VerbCounters before = Counters();
  estimate = remote->Estimate(one);
  EXPECT_EQ(Counters().reads + Counters().calls, before.reads + before.calls);
  EXPECT_EQ(estimate.calls, 0);
  EXPECT_EQ(estimate.postings, 3);
  EXPECT_EQ(estimate.lasting_postings, 2);
  EXPECT_EQ(estimate.lasting_calls, 0);
  ExpectFind(remote.get(), 4321);
  EXPECT_EQ((Counters() - before).round_trips, 3u);

  before = Counters();
  estimate = remote->Estimate(one);
  EXPECT_EQ(estimate.postings, 1);
  EXPECT_EQ(estimate.lasting_postings, 0);
  ExpectFind(remote.get(), 4321);
  const rdma::VerbCounters made = Counters() - before;
  EXPECT_EQ(made.round_trips, 1u);
  EXPECT_GE(estimate.reads, 1);
  EXPECT_LE(estimate.reads, 3);
  EXPECT_LE(std::abs(estimate.bytes - static_cast<double>(made.bytes_in)), 320.0);

  const auto by_call = Connect({.by_call = true});
  EXPECT_EQ(by_call->Estimate(one).calls, 1);
  EXPECT_EQ(by_call->Estimate(one).postings, 0);
}

TEST_F(XStoreClientTest, EstimatesOfScansGrowWithTheirRangeAndLimit) {
  Start();
  for (uint64_t key = 0; key < 20'000; ++key) Insert(key);
  const auto remote = Connect();
  Train(remote.get());
  for (uint64_t key = 0; key < 20'000; key += 10) ExpectFind(remote.get(), key);  // the whole cache
  for (const bool reverse : {false, true}) {
    for (const uint64_t keys : {1, 10, 100, 1000}) {
      const ScanRange range{.from = uint64_t{5000}, .to = 5000 + keys - 1, .reverse = reverse};
      const rdma::VerbCounters before = Counters();
      const ReadEstimate estimate = remote->Estimate(range);
      EXPECT_EQ(Counters().reads, before.reads);
      EXPECT_GE(estimate.keys, 0.5 * static_cast<double>(keys));
      EXPECT_LE(estimate.keys, 2 * static_cast<double>(keys) + 1);
      ExpectScan(remote.get(), 5000, 5000 + keys - 1, reverse);
      const rdma::VerbCounters made = Counters() - before;
      EXPECT_LE(estimate.reads, 3 * static_cast<double>(made.reads) + 3) << keys;
      EXPECT_GE(3 * estimate.reads + 3, static_cast<double>(made.reads)) << keys;
      EXPECT_GE(estimate.postings, 1);
    }
    const ReadEstimate limited =
        remote->Estimate(ScanRange{.from = uint64_t{0}, .to = UINT64_MAX, .reverse = reverse, .limit = 20});
    EXPECT_EQ(limited.keys, 20);
    EXPECT_LE(limited.reads, 10);
    EXPECT_EQ(limited.postings, 1);
  }
  EXPECT_EQ(remote->Estimate(ScanRange{.from = uint64_t{9}, .to = uint64_t{8}}).postings, 0);
}

TEST_F(XStoreClientTest, WhatOneClientCachedTheOthersOfASharedCacheHave) {
  Start();
  for (uint64_t i = 0; i < 10000; ++i) Insert(i * 10);
  const XCacheOptions options = {.shared = MakeSharedCache({})};
  const auto first = Connect(options);
  Train(first.get());
  for (uint64_t key = 0; key < 100000; key += 10) ExpectFind(first.get(), key);
  EXPECT_GE(BytesOf(*options.shared), index_->statistics().nodes * 8) << "an entry for each leaf";
  EXPECT_EQ(first->statistics().cache_bytes, 0u) << "it is not this client's alone";

  const auto second = Connect(options);
  ExpectFind(second.get(), 0);  // asks for the description of the index
  const rdma::VerbCounters before = Counters();
  for (uint64_t key = 0; key < 100000; key += 10) ExpectFind(second.get(), key);
  const rdma::VerbCounters spent = Counters() - before;
  EXPECT_EQ(spent.round_trips, 10000u);
  EXPECT_EQ(spent.calls, 0u);
}

TEST_F(XStoreClientTest, ClientsOfASharedCacheFollowItToOtherModels) {
  Start();
  for (uint64_t i = 0; i < 10000; ++i) Insert(i * 10);
  const XCacheOptions options = {.shared = MakeSharedCache({})};
  const auto first = Connect(options);
  const auto second = Connect(options);
  Train(first.get());
  Train(second.get());
  // The model gets more sub-models.
  for (uint64_t i = 0; i < 20000; ++i) Insert(i * 10 + 1 + i % 2);
  WaitForTraining();
  EXPECT_GT(index_->model_statistics().generation, 1u);
  for (const uint64_t key : keys_) ExpectFind(key % 4 == 0 ? first.get() : second.get(), key);
  ExpectScan(first.get(), 0, 5000);
  ExpectScan(second.get(), 90000, 95000);
}

TEST_F(XStoreClientTest, AStaleCacheIsStillRight) {
  for (const XCacheMode mode : {XCacheMode::kWhole, XCacheMode::kModelOnly, XCacheMode::kTopOnly}) {
    keys_.clear();
    if (cluster_ != nullptr) TearDown();
    Start();
    for (uint64_t i = 0; i < 2000; ++i) Insert(i * 1000);
    const auto stale = Connect({.mode = mode});
    Train(stale.get());
    for (const uint64_t key : std::set<uint64_t>(keys_)) ExpectFind(stale.get(), key);
    Random random(1);
    for (int round = 0; round < 10; ++round) {
      // Leaves split repeatedly; others die and are reused.
      for (int i = 0; i < 1500; ++i) {
        const uint64_t key = random.Below(2'000'000);
        if (!keys_.contains(key)) Insert(key);
      }
      const uint64_t from = random.Below(1'800'000);
      const std::vector<uint64_t> doomed(keys_.lower_bound(from), keys_.upper_bound(from + 200'000));
      for (const uint64_t key : doomed) Remove(key);
      PassGracePeriod();
      for (int i = 0; i < 300; ++i) {
        ExpectFind(stale.get(), random.Below(2'000'000));
        if (!keys_.empty())
          ExpectFind(stale.get(), *keys_.lower_bound(std::min(random.Below(2'000'000), *keys_.rbegin())));
      }
      for (int i = 0; i < 20; ++i) {
        const uint64_t begin = random.Below(2'000'000);
        ExpectScan(stale.get(), begin, begin + random.Below(100'000), random.OneIn(2), 1 + random.Below(300));
      }
    }
  }
}

TEST_F(XStoreClientTest, RetrainingEndsTheFallbacks) {
  Start();
  for (uint64_t i = 0; i < 5000; ++i) Insert(i * 1000);
  const auto remote = Connect();
  Train(remote.get());
  for (const uint64_t key : std::set<uint64_t>(keys_)) ExpectFind(remote.get(), key);
  // There are enough keys to split every leaf, but not to outgrow the model.
  Random random(2);
  for (int i = 0; i < 2000; ++i) {
    const uint64_t key = random.Below(5'000'000);
    if (!keys_.contains(key)) Insert(key);
  }
  WaitForTraining();
  const XStore::ModelStatistics model = index_->model_statistics();
  EXPECT_GT(model.retrainings, 0u);
  const std::set<uint64_t> present = keys_;
  for (const uint64_t key : present) ExpectFind(remote.get(), key);
  const ClientStatistics before = remote->statistics();
  const rdma::VerbCounters counters = Counters();
  for (const uint64_t key : present) ExpectFind(remote.get(), key);
  const double fallbacks = static_cast<double>(remote->statistics().fallbacks - before.fallbacks);
  EXPECT_LT(fallbacks / static_cast<double>(present.size()), 0.05);
  EXPECT_LT(static_cast<double>((Counters() - counters).round_trips), 1.1 * static_cast<double>(present.size()));
}

// The client has the model of the empty index, and no leaf splits after the load.
TEST_F(XStoreClientTest, TheModelFollowsABulkLoad) {
  constexpr uint64_t kKeys = 5000;
  Start();
  const auto remote = Connect();
  Train(remote.get());
  std::vector<LoadEntry> entries;
  for (uint64_t key = 0; key < kKeys; ++key) {
    entries.push_back({Key(key), FakeRecord(key)});
    keys_.insert(key);
  }
  {
    EpochGuard guard(owner_->epoch());
    ASSERT_TRUE(index_->BulkLoad(owner_->context(), entries, kLoadFill).ok());
  }
  WaitForTraining();
  for (uint64_t key = 0; key < kKeys; ++key) ExpectFind(remote.get(), key);
  const uint64_t before = remote->statistics().fallbacks;
  for (uint64_t key = 0; key < kKeys; ++key) ExpectFind(remote.get(), key);
  EXPECT_LT(remote->statistics().fallbacks - before, kKeys / 20);
}

// The tables of the old model lead to leaves from which one step to the right is enough, so the client never has to
// call the owner. It must still learn of the new model.
TEST_F(XStoreClientTest, AClientOfAnOldModelLearnsOfTheNewOne) {
  Start();
  for (uint64_t i = 0; i < 5000; ++i) Insert(i * 1000);
  const auto remote = Connect();
  Train(remote.get());
  for (const uint64_t key : std::set<uint64_t>(keys_)) ExpectFind(remote.get(), key);
  const uint64_t generation = index_->model_statistics().generation;
  for (uint64_t i = 0; i < 5000; ++i) Insert(i * 1000 + 500);
  WaitForTraining();
  EXPECT_GT(index_->model_statistics().generation, generation);
  const std::set<uint64_t> present = keys_;
  for (const uint64_t key : present) ExpectFind(remote.get(), key);
  const rdma::VerbCounters counters = Counters();
  for (const uint64_t key : present) ExpectFind(remote.get(), key);
  EXPECT_LT(static_cast<double>((Counters() - counters).round_trips), 1.1 * static_cast<double>(present.size()));
}

TEST_F(XStoreClientTest, TheModelExpandsAndShrinksAndClientsFollow) {
  Start({.keys_per_sub_model = 50});
  for (uint64_t i = 0; i < 1000; ++i) Insert(i * 64);
  const auto remote = Connect();
  Train(remote.get());
  const XStore::ModelStatistics small = index_->model_statistics();
  EXPECT_NEAR(static_cast<double>(small.sub_models), 20, 1);
  for (uint64_t i = 0; i < 10000; ++i) {
    if (!keys_.contains(i * 6)) Insert(i * 6);
  }
  WaitForTraining();
  const XStore::ModelStatistics large = index_->model_statistics();
  EXPECT_GT(large.generation, small.generation);
  EXPECT_GT(large.sub_models, 100u);
  for (int pass = 0; pass < 2; ++pass) {
    for (uint64_t i = 0; i < 10000; i += 3) ExpectFind(remote.get(), i * 6 + static_cast<uint64_t>(pass));
  }
  const rdma::VerbCounters counters = Counters();
  for (uint64_t i = 0; i < 10000; i += 3) ExpectFind(remote.get(), i * 6);
  EXPECT_EQ((Counters() - counters).calls, 0u);

  for (const uint64_t key : std::set<uint64_t>(keys_)) {
    if (key > 1000) Remove(key);
  }
  for (int i = 0; i < 200 && index_->statistics().nodes > 50; ++i) {
    PassGracePeriod();
    Insert(2'000'000 + static_cast<uint64_t>(i));
    Remove(2'000'000 + static_cast<uint64_t>(i));
  }
  WaitForTraining();
  EXPECT_LT(index_->model_statistics().sub_models, large.sub_models / 2);
  for (uint64_t key = 0; key < 3000; ++key) ExpectFind(remote.get(), key);
  ExpectScan(remote.get(), 0, UINT64_MAX);
}

TEST_F(XStoreClientTest, AScanOfAHundredIsTwoBatchesAtMost) {
  Start();
  for (uint64_t i = 0; i < 10000; ++i) Insert(i);
  const auto remote = Connect();
  Train(remote.get());
  for (uint64_t key = 0; key < 10000; key += 10) ExpectFind(remote.get(), key);
  const rdma::VerbCounters before = Counters();
  for (uint64_t from = 0; from < 9000; from += 100) {
    ExpectScan(remote.get(), from, UINT64_MAX, false, 100);
    ExpectScan(remote.get(), 0, from + 200, true, 100);
  }
  const rdma::VerbCounters spent = Counters() - before;
  EXPECT_EQ(spent.calls, 0u);
  EXPECT_LE(spent.round_trips, 2 * 180u);
}

TEST_F(XStoreClientTest, TheCacheStaysWithinItsBound) {
  Start({.keys_per_sub_model = 100});
  for (uint64_t i = 0; i < 20000; ++i) Insert(i * 3);
  for (const size_t bound : {size_t{2500}, size_t{8000}, size_t{20000}}) {
    const auto remote = Connect({.max_bytes = bound});
    Train(remote.get());
    Random random(3);
    for (int i = 0; i < 2000; ++i) {
      ExpectFind(remote.get(), random.Below(60000));
      ASSERT_LE(remote->statistics().cache_bytes, bound);
    }
  }
}

TEST_F(XStoreClientTest, WritersAtTheOwnerAndClientsOfAllKindsAtOnce) {
  for (const bool adversarial : {false, true}) {
    keys_.clear();
    if (cluster_ != nullptr) TearDown();
    Start({.keys_per_sub_model = 64}, adversarial);
    cluster_->StartEpochs();
    constexpr uint64_t kStay = 1000;
    for (uint64_t i = 0; i < kStay; ++i) Insert(i * 100);
    std::atomic<bool> stop{false};
    std::thread writer([&] {
      OwnerThread mine(cluster_.get());
      Random random(4);
      for (uint64_t round = 0; !stop; ++round) {
        std::vector<uint64_t> keys;
        for (int i = 0; i < 400; ++i) {
          const uint64_t key = (round * 7000 + static_cast<uint64_t>(i) * 13) % (kStay * 100);
          if (key % 100 == 0) continue;
          EpochGuard guard(mine.epoch());
          if (index_->Insert(mine.context(), key, FakeRecord(key), nullptr).ok()) keys.push_back(key);
        }
        for (const uint64_t key : keys) {
          EpochGuard guard(mine.epoch());
          ASSERT_TRUE(index_->Remove(mine.context(), key, FakeRecord(key)).ok());
        }
      }
    });
    for (const XCacheMode mode : {XCacheMode::kWhole, XCacheMode::kModelOnly, XCacheMode::kTopOnly}) {
      const auto remote = Connect({.mode = mode});
      Random random(5);
      for (int i = 0; i < (adversarial ? 60 : 300); ++i) {
        const uint64_t key = random.Below(kStay) * 100;
        EpochGuard guard(client_->epoch());
        const auto found = client_->Await(remote->Find(key));
        ASSERT_TRUE(found.ok()) << found.status();
        ASSERT_EQ(found->record, FakeRecord(key));
        if (i % 30 != 0) continue;
        ScanResult result;
        const Status status = client_->Await(remote->Scan({.from = key, .to = key + 20000}, &result));
        ASSERT_TRUE(status.ok()) << status;
        uint64_t expected = key;
        for (const Entry& entry : result.entries) {
          if (entry.key.integer() % 100 != 0) continue;
          ASSERT_EQ(entry.key.integer(), expected);
          expected += 100;
        }
        ASSERT_EQ(expected, std::min(key + 20100, kStay * 100));
      }
    }
    stop = true;
    writer.join();
  }
}

TEST_F(XStoreClientTest, NonsenseFromPeersIsRefused) {
  Start();
  for (uint64_t i = 0; i < 100; ++i) Insert(i);
  const auto remote = Connect();
  Train(remote.get());
  Random random(6);
  std::vector<std::byte> response(rdma::kMaxMessageBytes);
  for (rdma::MethodId method = xstore::kDescribe; method <= xstore::kScan; ++method) {
    for (int i = 0; i < 200; ++i) {
      std::vector<std::byte> request(random.Below(64));
      for (std::byte& byte : request) byte = static_cast<std::byte>(random.Below(256));
      if (request.size() >= 2 && random.OneIn(2)) request[0] = std::byte{kId}, request[1] = std::byte{0};
      const auto call = [&]() -> coro::Task<StatusOr<size_t>> {
        StatusOr<size_t> bytes = co_await client_->channel()->Call(0, method, request, response);
        co_return bytes;
      };
      EpochGuard guard(client_->epoch());
      (void)client_->Await(call());
    }
  }
  EpochGuard guard(owner_->epoch());
  EXPECT_TRUE(index_->CheckStructure().ok()) << index_->CheckStructure();
}

// The owner's transactions look at the record that the index gives them.
TEST_F(XStoreClientTest, AnInsertNeedsARecordOfItsKey) {
  Start();
  const auto remote = Connect();
  const uint64_t end = cluster_->owner().node->memory().size();
  const rdma::GlobalAddress other = owner_->NewRecord(uint64_t{1});
  const rdma::GlobalAddress record = owner_->NewRecord(uint64_t{2});
  EpochGuard guard(client_->epoch());
  for (const rdma::GlobalAddress bad :
       {rdma::GlobalAddress(), rdma::GlobalAddress(0, 64), rdma::GlobalAddress(0, end - kLineBytes),
        rdma::GlobalAddress(0, end), rdma::GlobalAddress(0, uint64_t{1} << 47), rdma::GlobalAddress(1, record.offset()),
        record.WithMark(true), record + kWordBytes, other}) {
    const Status status = client_->Await(remote->Insert(uint64_t{2}, bad)).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad.ToString() << ": " << status;
  }
  EXPECT_EQ(index_->statistics().keys, 0u);
  EXPECT_TRUE(client_->Await(remote->Insert(uint64_t{2}, record)).ok());
}

TEST_F(XStoreClientTest, AnIndexThatDoesNotExistIsNotFound) {
  Start();
  auto remote = ConnectXStore(client_->channel(), 0, kId + 1, {}, {});
  ASSERT_TRUE(remote.ok());
  EpochGuard guard(client_->epoch());
  EXPECT_TRUE(absl::IsNotFound(client_->Await((*remote)->Find(1)).status()));
}

}  // namespace xstore_client_test
}  // namespace gannet::index
