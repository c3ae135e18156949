// The cache of models that the clients of a process share: in several threads, with a limit, while models change.
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/rolex/rolex.h"
#include "index/rolex/rolex_index.h"
#include "index/rolex/shared_models.h"
#include "tests/index/record_helper.h"

namespace gannet::index::rolex {
namespace {

constexpr IndexId kId = 3;
constexpr uint64_t kStay = 40'000;    // keys that are always there
constexpr uint64_t kDistance = 1000;  // between them
constexpr size_t kSmall = 24'000;     // bytes of a cache that has room for a part of the models

// Keys are numbers; byte keys have 31 bytes in the same order.
class RolexSharedCache : public ::testing::Test {
 protected:
  explicit RolexSharedCache(KeyKind kind) : kind_(kind), cluster_({}) {
    RegisterRolexMethods(cluster_.owner().service.get());
    cluster_.Serve();
    owner_ = std::make_unique<OwnerThread>(&cluster_);
    auto index = CreateRolex(cluster_.owner().service.get(), kId, kind_);
    GANNET_CHECK(index.ok(), "%s", index.status().ToString());
    index_ = *std::move(index);
    rolex_ = static_cast<RolexIndex*>(index_.get());
    std::vector<OwnedKey> keys;
    for (uint64_t i = 0; i < kStay; ++i) {
      keys.push_back(KeyOf(i * kDistance));
      stay_.push_back(NewRecord(owner_.get(), i * kDistance));
    }
    std::vector<LoadEntry> entries;
    for (uint64_t i = 0; i < kStay; ++i) entries.push_back({keys[i].view(), stay_[i]});
    const Status loaded = index_->BulkLoad(owner_->context(), entries, 1.0);
    GANNET_CHECK(loaded.ok(), "%s", loaded.ToString());
  }

  OwnedKey KeyOf(uint64_t n) const {
    if (kind_ == KeyKind::kInteger) return OwnedKey(Key(n));
    const std::string number = std::to_string(n);
    const std::string key = "a table of some names: " + std::string(8 - number.size(), '0') + number;
    return OwnedKey(Key(std::string_view(key)));
  }
  uint64_t NumberOf(const OwnedKey& key) const {
    return kind_ == KeyKind::kInteger ? key.integer() : std::stoull(std::string(key.bytes().substr(23)));
  }
  // Integer keys need none: nobody looks at it.
  rdma::GlobalAddress NewRecord(OwnerThread* owner, uint64_t n) const {
    if (kind_ == KeyKind::kBytes) return owner->NewRecord(KeyOf(n).view());
    return {0, (uint64_t{1} << 20) + n % 4096 * kLineBytes};
  }

  std::unique_ptr<RemoteIndex> Connect(ClientThread* thread, const std::shared_ptr<SharedModels>& cache) {
    auto remote = ConnectRolex(thread->channel(), 0, kId, {.key_kind = kind_, .shared = cache});
    GANNET_CHECK(remote.ok(), "%s", remote.status().ToString());
    return *std::move(remote);
  }
  void ReadAll(ClientThread* thread, RemoteIndex* remote) {
    for (uint64_t i = 0; i < kStay; ++i) {
      const auto found = thread->Await(remote->Find(KeyOf(i * kDistance).view()));
      ASSERT_TRUE(found.ok()) << found.status();
      ASSERT_EQ(found->record, stay_[i]) << i;
    }
  }

  // Lookups, scans, inserts and removals of the client's own keys, at least kOperations and until *stop.
  void Work(const std::shared_ptr<SharedModels>& cache, uint64_t number, const std::atomic<bool>& stop) {
    constexpr int kOperations = 4000;
    ClientThread thread(&cluster_);
    OwnerThread records(&cluster_);
    auto remote = Connect(&thread, cache);
    Random random(number);
    std::map<uint64_t, rdma::GlobalAddress> own;
    for (int i = 0; (i < kOperations || !stop) && !HasFatalFailure(); ++i) {
      const uint64_t stays = random.Below(kStay) * kDistance;
      const uint64_t what = random.Below(8);
      if (what == 0) {
        ScanResult rows;
        const OwnedKey from = KeyOf(stays);
        const OwnedKey to = KeyOf(stays + 50 * kDistance);
        const Status scanned = thread.Await(remote->Scan({.from = from.view(), .to = to.view()}, &rows));
        ASSERT_TRUE(scanned.ok()) << scanned;
        uint64_t next = stays;
        for (const Entry& row : rows.entries) {
          const uint64_t key = NumberOf(row.key);
          if (key % kDistance == 0) {
            ASSERT_EQ(row.record, stay_[key / kDistance]);
          }
          ASSERT_LE(key, next) << "a key that stays is missing";
          if (key == next) next += kDistance;
        }
      } else if (what <= 3) {
        const uint64_t key = stays + number + 10 * random.Below(90);
        const auto [at, is_new] = own.try_emplace(key);
        if (is_new) at->second = NewRecord(&records, key);
        const auto inserted = thread.Await(remote->Insert(KeyOf(key).view(), at->second));
        ASSERT_EQ(inserted.ok(), is_new) << inserted.status();
      } else if (what == 4 && !own.empty()) {
        auto at = own.lower_bound(stays);
        if (at == own.end()) at = own.begin();
        const auto removed = thread.Await(remote->Remove(KeyOf(at->first).view(), at->second));
        ASSERT_TRUE(removed.ok()) << removed.status();
        own.erase(at);
      } else {
        const uint64_t key = stays + (random.OneIn(4) ? 999 : 0);  // 999 is never there
        const auto found = thread.Await(remote->Find(KeyOf(key).view()));
        ASSERT_TRUE(found.ok()) << found.status();
        // Of an absent byte key there may be an entry with its tag.
        if (key != stays && !found->record.is_null() && kind_ == KeyKind::kBytes) continue;
        ASSERT_EQ(found->record, key == stays ? stay_[key / kDistance] : rdma::GlobalAddress()) << key;
      }
    }
    EXPECT_EQ(remote->statistics().cache_bytes, 0u) << "it is not this client's alone";
  }

  const KeyKind kind_;
  IndexCluster cluster_;
  std::unique_ptr<OwnerThread> owner_;
  std::unique_ptr<LocalIndex> index_;
  RolexIndex* rolex_ = nullptr;
  std::vector<rdma::GlobalAddress> stay_;  // records
};

class RolexSharedCacheTest : public RolexSharedCache, public testing::WithParamInterface<KeyKind> {
 protected:
  RolexSharedCacheTest() : RolexSharedCache(GetParam()) {}
};

TEST_P(RolexSharedCacheTest, WhatOneClientCachedTheOthersHave) {
  const auto cache = MakeRolexCache();
  ClientThread first(&cluster_);
  auto remote = Connect(&first, cache);
  ReadAll(&first, remote.get());
  const uint64_t bytes = cache->bytes();
  EXPECT_GT(bytes, kStay / 2);
  EXPECT_LE(bytes, kStay) << "a byte per key";
  ClientThread second(&cluster_);
  auto other = Connect(&second, cache);
  const rdma::VerbCounters before = second.channel()->counters();
  ReadAll(&second, other.get());
  const rdma::VerbCounters used = second.channel()->counters() - before;
  EXPECT_EQ(used.calls, 0u);
  EXPECT_LE(used.reads, kStay + kStay / 5);
  EXPECT_EQ(cache->bytes(), bytes);
}

TEST_P(RolexSharedCacheTest, ALimitIsKeptAndTheModelsInUseStay) {
  const auto cache = MakeRolexCache(kSmall);
  ClientThread thread(&cluster_);
  auto remote = Connect(&thread, cache);
  ReadAll(&thread, remote.get());
  // The directory has few bytes per model of some kilobytes.
  EXPECT_LE(cache->bytes(), kSmall + kSmall / 4);
  // A few keys that fit are not fetched again and again.
  const auto read_few = [&] {
    for (uint64_t i = 0; i < 1000; ++i) {
      ASSERT_TRUE(thread.Await(remote->Find(KeyOf(i * kDistance).view())).ok());
    }
  };
  read_few();
  const rdma::VerbCounters before = thread.channel()->counters();
  read_few();
  EXPECT_LE((thread.channel()->counters() - before).reads, 1300u);
}

// A limit below the size of any model: each lookup fetches its model, and is right.
TEST_P(RolexSharedCacheTest, ALimitOfOneByteIsSlowOnly) {
  const auto cache = MakeRolexCache(1);
  ClientThread thread(&cluster_);
  auto remote = Connect(&thread, cache);
  for (uint64_t i = 0; i < kStay; i += 997) {
    const auto found = thread.Await(remote->Find(KeyOf(i * kDistance).view()));
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->record, stay_[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(, RolexSharedCacheTest, testing::Values(KeyKind::kInteger, KeyKind::kBytes),
                         [](const auto& instance) {
                           return instance.param == KeyKind::kInteger ? "Integers" : "Bytes";
                         });

class RolexSharedCacheLimitTest : public RolexSharedCache,
                                  public testing::WithParamInterface<std::tuple<size_t, KeyKind>> {
 protected:
  RolexSharedCacheLimitTest() : RolexSharedCache(std::get<1>(GetParam())) {}
};

TEST_P(RolexSharedCacheLimitTest, AnswersAreRightWhileTheIndexAndTheCacheChange) {
  const auto cache = MakeRolexCache(std::get<0>(GetParam()));
  std::atomic<bool> stop{false};
  std::vector<std::thread> clients;
  for (uint64_t i = 1; i <= 3; ++i) clients.emplace_back([&, i] { Work(cache, i, stop); });
  for (int round = 0; round < 20 && !HasFailure(); ++round) {
    rolex_->TrainNow();
    std::this_thread::yield();
  }
  stop = true;
  for (std::thread& client : clients) client.join();
  const Status structure = index_->CheckStructure();
  EXPECT_TRUE(structure.ok()) << structure;
}

INSTANTIATE_TEST_SUITE_P(, RolexSharedCacheLimitTest,
                         testing::Combine(testing::Values(kSmall, SIZE_MAX),
                                          testing::Values(KeyKind::kInteger, KeyKind::kBytes)),
                         [](const auto& instance) {
                           return std::string(std::get<0>(instance.param) == kSmall ? "Small" : "Unlimited") +
                                  (std::get<1>(instance.param) == KeyKind::kInteger ? "Integers" : "Bytes");
                         });

}  // namespace
}  // namespace gannet::index::rolex
