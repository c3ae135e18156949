// A cache of an owner's model that threads share: what one puts while others look.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/xstore/client/cached_model.h"
#include "index/xstore/xstore.h"
#include "tests/index/record_helper.h"
#include "tests/index/training.h"

namespace gannet::index {
namespace xstore_shared_cache_test {

using xstore::CachedGeneration;
using xstore::CachedModel;
using xstore::CachedTable;
using xstore::CacheView;
using xstore::SubModel;

constexpr uint32_t kSubModels = 200;

xstore::TopModel MakeTop() {
  std::vector<uint64_t> samples;
  for (uint64_t i = 0; i < 1000; ++i) samples.push_back(i * 1000);
  return xstore::TopModel::Train(xstore::Projection(), samples, kSubModels, 64);
}

// Sub-models and tables that say in each part whose they are: of which sub-model, from which writing.
struct Marked {
  uint32_t sub_model;
  uint32_t writing;

  SubModel model(uint32_t size) const {
    return {.slope = static_cast<float>(sub_model),
            .intercept = static_cast<float>(writing),
            .under = static_cast<uint8_t>(writing),
            .over = static_cast<uint8_t>(writing >> 8),
            .spread = static_cast<uint8_t>(sub_model),
            .size = size};
  }
  uint64_t word() const { return uint64_t{sub_model} << 32 | writing; }
  static Marked Of(const SubModel& model) {
    return {static_cast<uint32_t>(model.slope), static_cast<uint32_t>(model.intercept)};
  }
};

// Puts sub-models of random sizes, over and over.
void Write(CachedGeneration* cache, uint64_t seed, int puts) {
  Random random(seed);
  for (int i = 0; i < puts; ++i) {
    const Marked marked{static_cast<uint32_t>(random.Below(kSubModels)), static_cast<uint32_t>(random.Below(1 << 22))};
    // The tables are mostly of one size: then the table stays in its place.
    const auto size = static_cast<uint32_t>(random.OneIn(4) ? 1 + random.Below(60) : 20);
    const std::vector<uint64_t> words(size, marked.word());
    cache->PutTable(marked.sub_model, marked.model(size), words);
    cache->PutModel(marked.sub_model, marked.model(size), marked.writing);
  }
}

// Looks at random sub-models until *stop. Returns how often one was cached.
uint64_t Read(const CachedGeneration& cache, uint64_t seed, const std::atomic<bool>& stop) {
  Random random(seed);
  std::vector<uint64_t> words;
  uint64_t found = 0;
  while (!stop) {
    const auto sub_model = static_cast<uint32_t>(random.Below(kSubModels));
    SubModel model;
    uint32_t block = 0;
    const auto copy = [&](const CachedTable& table) {
      model = table.model();
      words.resize(model.size);
      for (uint32_t i = 0; i < model.size; ++i) words[i] = table.word(i);
    };
    if (cache.FindTable(sub_model, copy)) {
      const Marked marked = Marked::Of(model);
      for (const uint64_t word : words) EXPECT_EQ(word, marked.word());
    } else if (cache.FindModel(sub_model, &model, &block)) {
      EXPECT_EQ(block, Marked::Of(model).writing);
    } else {
      continue;
    }
    ++found;
    const Marked marked = Marked::Of(model);
    EXPECT_EQ(marked.sub_model, sub_model);
    EXPECT_EQ(model, marked.model(model.size));
    if (testing::Test::HasFailure()) return found;
  }
  return found;
}

TEST(XStoreSharedCache, ReadersSeeNoMixtures) {
  constexpr size_t kTop = 20'000;  // more than the top model and the slots take
  struct Case {
    XCacheMode mode;
    size_t max_bytes;
  };
  for (const Case& each :
       {Case{XCacheMode::kWhole, SIZE_MAX}, Case{XCacheMode::kWhole, kTop}, Case{XCacheMode::kModelOnly, SIZE_MAX}}) {
    CachedGeneration cache(each.mode, each.max_bytes, 1, MakeTop(), {1});
    ASSERT_LT(cache.bytes(), kTop / 2);
    std::atomic<uint64_t> found{0};
    // The round is repeated if the readers got no core.
    while (found == 0 && !HasFailure()) {
      std::atomic<bool> stop{false};
      std::vector<std::thread> readers;
      for (uint64_t i = 0; i < 2; ++i) readers.emplace_back([&, i] { found += Read(cache, 10 + i, stop); });
      std::thread other([&] { Write(&cache, 1, 50'000); });
      Write(&cache, 2, 50'000);
      other.join();
      stop = true;
      for (std::thread& reader : readers) reader.join();
    }
    EXPECT_GT(found, 0u);
    EXPECT_LE(cache.bytes(), each.max_bytes);
  }
}

// Clients follow the cache from one generation to the next while all of them fill it.
TEST(XStoreSharedCache, ClientsFollowGenerations) {
  constexpr uint64_t kGenerations = 300;
  const auto cache = std::make_shared<CachedModel>(XCacheOptions{.max_bytes = 20'000});
  const auto client = [&cache](uint64_t seed) {
    Random random(seed);
    CacheView view(cache);
    while (view.number() < kGenerations) {
      view.Follow();
      if (view.number() == 0 || random.OneIn(200)) {
        cache->Begin(view.number() + 1, view.change(), MakeTop(), {1});
        continue;
      }
      const auto sub_model = static_cast<uint32_t>(random.Below(kSubModels));
      const auto generation = static_cast<uint32_t>(view.number());
      Marked marked{};
      if (view->FindTable(sub_model, [&](const CachedTable& table) { marked = Marked::Of(table.model()); })) {
        EXPECT_EQ(marked.sub_model, sub_model);
        EXPECT_EQ(marked.writing, generation);
      } else {
        const Marked mine{sub_model, generation};
        view->PutTable(sub_model, mine.model(20), std::vector<uint64_t>(20, mine.word()));
      }
    }
  };
  std::vector<std::thread> clients;
  for (uint64_t seed = 1; seed <= 4; ++seed) clients.emplace_back(client, seed);
  for (std::thread& each : clients) each.join();
  EXPECT_LE(cache->bytes(), 20'000u) << "no client keeps an old generation";
}

// An owner, a thread that inserts and removes keys there, and clients in threads that share one cache.
class XStoreSharedCacheTest : public testing::Test {
 protected:
  static constexpr IndexId kId = 5;
  static constexpr uint64_t kDistance = 100;  // of the keys that stay

  void SetUp() override {
    cluster_ = std::make_unique<IndexCluster>(IndexCluster::Options{});
    RegisterXStoreMethods(cluster_->owner().service.get());
    auto index = XStore::Create(cluster_->owner().service.get(), kId, {.keys_per_sub_model = 64});
    ASSERT_TRUE(index.ok()) << index.status();
    index_ = std::move(*index);
    cluster_->Serve();
    cluster_->StartEpochs();
    owner_ = std::make_unique<OwnerThread>(cluster_.get());
    for (uint64_t i = 0; i < kStay; ++i) Insert(i * kDistance);
  }
  void TearDown() override {
    cluster_->owner().node->Shutdown();
    owner_.reset();
    index_.reset();
    cluster_.reset();
  }

  void Insert(uint64_t key) {
    EpochGuard guard(owner_->epoch());
    const auto change = index_->Insert(owner_->context(), key, FakeRecord(key), nullptr);
    ASSERT_TRUE(change.ok()) << change.status();
  }
  void Remove(uint64_t key) {
    EpochGuard guard(owner_->epoch());
    const auto change = index_->Remove(owner_->context(), key, FakeRecord(key));
    ASSERT_TRUE(change.ok()) << change.status();
  }

  // Round after round, the number of keys grows by half and more, above those that stay; and keys come and go between
  // those that stay, whose leaves split then. So sub-models are retrained, and generations follow each other.
  void ChangeTheIndex(uint64_t round) {
    const uint64_t above = kStay << round;
    for (uint64_t i = above; i < 2 * above; ++i) Insert(kStay * kDistance * 10 + i);
    ChangeBetween(round);
  }
  void ChangeBetween(uint64_t round) {
    const uint64_t odd = 1 + round * 8 % 90;
    for (uint64_t i = 0; i < 2 * kStay; ++i) Insert(i / 2 * kDistance + odd + i % 2);
    WaitForTraining(index_.get());
    for (uint64_t i = 0; i < 2 * kStay; ++i) Remove(i / 2 * kDistance + odd + i % 2);
  }

  void CheckFind(ClientThread* client, RemoteIndex* remote, Random* random) {
    // The last two of a hundred are never there.
    const uint64_t key = random->Below(kStay) * kDistance + (random->OneIn(4) ? 98 + random->Below(2) : 0);
    EpochGuard guard(client->epoch());
    const StatusOr<FindResult> found = client->Await(remote->Find(key));
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(found->record, key % kDistance == 0 ? FakeRecord(key) : rdma::GlobalAddress()) << key;
  }
  void CheckFindMany(ClientThread* client, RemoteIndex* remote, Random* random) {
    std::vector<Key> keys;
    for (int i = 0; i < 20; ++i) keys.emplace_back(random->Below(kStay) * kDistance);
    std::vector<FindResult> results(keys.size());
    EpochGuard guard(client->epoch());
    const Status status = client->Await(remote->FindMany(keys, results));
    ASSERT_TRUE(status.ok()) << status;
    for (size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(results[i].record, FakeRecord(keys[i].integer()));
  }
  void CheckScan(ClientThread* client, RemoteIndex* remote, Random* random) {
    const uint64_t from = random->Below(kStay) * kDistance;
    const uint64_t to = from + random->Below(200 * kDistance);
    const bool reverse = random->OneIn(2);
    ScanResult result;
    EpochGuard guard(client->epoch());
    const Status status = client->Await(remote->Scan({.from = from, .to = to, .reverse = reverse}, &result));
    ASSERT_TRUE(status.ok()) << status;
    std::vector<uint64_t> expected;
    for (uint64_t key = from; key <= to && key < kStay * kDistance; key += kDistance) expected.push_back(key);
    if (reverse) std::reverse(expected.begin(), expected.end());
    std::vector<uint64_t> got;
    for (const Entry& entry : result.entries) {
      ASSERT_EQ(entry.record, FakeRecord(entry.key.integer()));
      if (entry.key.integer() % kDistance == 0) got.push_back(entry.key.integer());
    }
    ASSERT_EQ(got, expected) << from << " to " << to;
  }
  // Does at least kOperations, and continues until *stop.
  void Work(const std::shared_ptr<CachedModel>& cache, XCacheMode mode, uint64_t seed, const std::atomic<bool>& stop) {
    ClientThread client(cluster_.get());
    auto remote = ConnectXStore(client.channel(), 0, kId, {}, {.mode = mode, .shared = cache});
    ASSERT_TRUE(remote.ok()) << remote.status();
    Random random(seed);
    for (int i = 0; (i < kOperations || !stop) && !HasFatalFailure(); ++i) {
      const uint64_t what = random.Below(20);
      if (what == 0) {
        CheckScan(&client, remote->get(), &random);
      } else if (what == 1) {
        CheckFindMany(&client, remote->get(), &random);
      } else {
        CheckFind(&client, remote->get(), &random);
      }
      const Key key(random.Below(kStay) * kDistance);
      EXPECT_GE((*remote)->Estimate(std::span(&key, 1)).postings, 0);
    }
    --working_;
    EXPECT_EQ((*remote)->statistics().cache_bytes, 0u) << "it is not this client's alone";
  }

  static constexpr uint64_t kStay = 1500;
  static constexpr int kOperations = 5000;
  std::atomic<int> working_{0};  // clients
  std::unique_ptr<IndexCluster> cluster_;
  std::unique_ptr<XStore> index_;
  std::unique_ptr<OwnerThread> owner_;
};

struct Limits {
  XCacheMode mode;
  size_t max_bytes;
};
class XStoreSharedCacheLimitsTest : public XStoreSharedCacheTest, public testing::WithParamInterface<Limits> {};

TEST_P(XStoreSharedCacheLimitsTest, AnswersAreRightWhileTheIndexAndTheCacheChange) {
  constexpr uint64_t kRounds = 4;
  const auto cache = MakeSharedCache({.mode = GetParam().mode, .max_bytes = GetParam().max_bytes});
  std::atomic<bool> stop{false};
  std::vector<std::thread> clients;
  working_ = 3;
  for (uint64_t i = 1; i <= 3; ++i) clients.emplace_back([&, i] { Work(cache, GetParam().mode, i, stop); });
  WaitForTraining(index_.get());  // there is a model once a client has asked for it
  for (uint64_t round = 0; round < kRounds && !HasFailure(); ++round) ChangeTheIndex(round);
  stop = true;
  for (uint64_t round = kRounds; working_ > 0 && !HasFailure(); ++round) ChangeBetween(round);
  for (std::thread& client : clients) client.join();
  EXPECT_GE(index_->model_statistics().generation, kRounds);
  EXPECT_GT(index_->model_statistics().retrainings, 0u);
  EXPECT_LE(BytesOf(*cache), GetParam().max_bytes);
}

// With 16,000 bytes a part of the tables fits: they are evicted all the time.
INSTANTIATE_TEST_SUITE_P(, XStoreSharedCacheLimitsTest,
                         testing::Values(Limits{XCacheMode::kWhole, 16'000}, Limits{XCacheMode::kWhole, SIZE_MAX},
                                         Limits{XCacheMode::kModelOnly, SIZE_MAX}));

// One client fills the cache, the others find it full.
TEST_F(XStoreSharedCacheTest, ItsBytesDoNotGrowWithItsClients) {
  const auto cache = MakeSharedCache({});
  std::vector<uint64_t> bytes;
  for (int i = 0; i < 4; ++i) {
    std::thread([&] {
      ClientThread client(cluster_.get());
      auto remote = ConnectXStore(client.channel(), 0, kId, {}, {.shared = cache});
      ASSERT_TRUE(remote.ok()) << remote.status();
      for (const bool again : {false, true}) {
        const rdma::VerbCounters before = client.channel()->counters();
        for (uint64_t n = 0; n < kStay; ++n) {
          EpochGuard guard(client.epoch());
          ASSERT_TRUE(client.Await((*remote)->Find(n * kDistance)).ok());
        }
        const rdma::VerbCounters spent = client.channel()->counters() - before;
        EXPECT_TRUE(i == 0 || spent.calls == 0) << spent.calls;
        EXPECT_TRUE(i == 0 || spent.round_trips == kStay) << spent.round_trips;
        if (!again) WaitForTraining(index_.get());
      }
      EXPECT_EQ((*remote)->statistics().cache_bytes, 0u);
    }).join();
    bytes.push_back(BytesOf(*cache));
  }
  EXPECT_EQ(bytes, std::vector<uint64_t>(4, bytes[0]));
}

}  // namespace xstore_shared_cache_test
}  // namespace gannet::index
