// The cache of what leads to leaves (inner nodes, models) that the clients of a process share: in several threads, with
// a limit, while the index changes.
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "tests/index/record_helper.h"
#include "tests/index/shared_leaf_world.h"

namespace gannet::index {
namespace leaf_cache_test {

constexpr uint64_t kStay = 40'000;    // keys that are always there
constexpr uint64_t kDistance = 1000;  // between them
constexpr size_t kSmall = 24'000;     // bytes of a cache that has room for a part of the nodes, or models
constexpr size_t kAmple = 64 << 20;   // and of one that has room for all

class LeafCache : public ::testing::Test, protected SharedLeafWorld {
 protected:
  explicit LeafCache(const SharedLeafCase& of) : SharedLeafWorld(of, 1) {
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

  uint64_t NumberOf(const OwnedKey& key) const {
    return keys_ == KeyKind::kInteger ? key.integer() : std::stoull(std::string(key.bytes().substr(31, 9)));
  }
  // Integer keys need no record, because nobody looks at it.
  rdma::GlobalAddress NewRecord(OwnerThread* owner, uint64_t n) const {
    if (keys_ == KeyKind::kBytes) return owner->NewRecord(KeyOf(n).view());
    return {0, (uint64_t{1} << 20) + n % 4096 * kLineBytes};
  }
  std::unique_ptr<RemoteIndex> NewClientOf(ClientThread* thread, const std::shared_ptr<SharedCache>& cache) const {
    return NewClient(thread->channel(), rdma::Channel::kDefaultCallTimeout, cache);
  }
  // Every `step`th of the first `n` keys that stay.
  void Read(ClientThread* thread, RemoteIndex* remote, uint64_t n = kStay, uint64_t step = 1) const {
    for (uint64_t i = 0; i < n; i += step) {
      const auto found = thread->Await(remote->Find(KeyOf(i * kDistance).view()));
      ASSERT_TRUE(found.ok()) << found.status();
      ASSERT_EQ(found->record, stay_[i]) << i;
    }
  }

  // Lookups, scans, inserts and removals of the client's own keys, at least kOperations and until *stop.
  void Work(const std::shared_ptr<SharedCache>& cache, uint64_t number, const std::atomic<bool>& stop) {
    constexpr int kOperations = 4000;
    ClientThread thread(&cluster_);
    OwnerThread records(&cluster_);
    auto remote = NewClientOf(&thread, cache);
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
        // An entry may have the tag of an absent byte key.
        if (key != stays && !found->record.is_null() && keys_ == KeyKind::kBytes) continue;
        ASSERT_EQ(found->record, key == stays ? stay_[key / kDistance] : rdma::GlobalAddress()) << key;
      }
    }
    EXPECT_EQ(remote->statistics().cache_bytes, 0u) << "it is not this client's alone";
  }

  std::vector<rdma::GlobalAddress> stay_;  // records
};

class LeafCacheTest : public LeafCache, public testing::WithParamInterface<SharedLeafCase> {
 protected:
  LeafCacheTest() : LeafCache(GetParam()) {}
};

TEST_P(LeafCacheTest, WhatOneClientCachedTheOthersHave) {
  const auto cache = kind_.make_cache(kAmple);
  ClientThread first(&cluster_);
  auto remote = NewClientOf(&first, cache);
  Read(&first, remote.get());
  const uint64_t bytes = cache->bytes();
  EXPECT_GT(bytes, kStay / 2);
  if (kind_.learned) {
    EXPECT_LE(bytes, kStay) << "a byte per key";
  }
  ClientThread second(&cluster_);
  auto other = NewClientOf(&second, cache);
  const rdma::VerbCounters before = second.channel()->counters();
  Read(&second, other.get());
  const rdma::VerbCounters used = second.channel()->counters() - before;
  EXPECT_EQ(used.calls, kind_.learned ? 0u : 1u) << "where the root is";
  // One leaf each. Two byte keys with one tag take a READ of their records.
  EXPECT_LE(used.reads, kind_.learned || keys_ == KeyKind::kBytes ? kStay + kStay / 5 : kStay);
  EXPECT_EQ(cache->bytes(), bytes);
}

TEST_P(LeafCacheTest, ALimitIsKeptAndWhatIsInUseStays) {
  const auto cache = kind_.make_cache(kSmall);
  ClientThread thread(&cluster_);
  auto remote = NewClientOf(&thread, cache);
  Read(&thread, remote.get());
  // The directory of models has few bytes per model of some kilobytes.
  EXPECT_LE(cache->bytes(), kind_.learned ? kSmall + kSmall / 4 : kSmall);
  EXPECT_GT(cache->bytes(), kSmall / 2);
  if (!kind_.learned) return;  // a tree's cache gives up its nodes in turn
  // A few keys that fit are not fetched again and again.
  Read(&thread, remote.get(), 1000);
  const rdma::VerbCounters before = thread.channel()->counters();
  Read(&thread, remote.get(), 1000);
  EXPECT_LE((thread.channel()->counters() - before).reads, 1300u);
}

// A limit below the size of any node or model: each lookup fetches what leads to its leaf, and is right.
TEST_P(LeafCacheTest, ALimitOfOneByteIsSlowOnly) {
  const auto cache = kind_.make_cache(1);
  ClientThread thread(&cluster_);
  auto remote = NewClientOf(&thread, cache);
  Read(&thread, remote.get(), kStay, 997);
  if (!kind_.learned) {
    EXPECT_EQ(cache->bytes(), 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, LeafCacheTest, AllSharedLeafCases(),
                         [](const auto& test) { return NameOf(test.param); });

class LeafCacheLimitTest : public LeafCache, public testing::WithParamInterface<std::tuple<SharedLeafCase, size_t>> {
 protected:
  LeafCacheLimitTest() : LeafCache(std::get<0>(GetParam())) {}
};

TEST_P(LeafCacheLimitTest, AnswersAreRightWhileTheIndexAndTheCacheChange) {
  const auto cache = kind_.make_cache(std::get<1>(GetParam()));
  std::atomic<bool> stop{false};
  std::vector<std::thread> clients;
  for (uint64_t i = 1; i <= 3; ++i) clients.emplace_back([&, i] { Work(cache, i, stop); });
  for (int round = 0; kind_.learned && round < 20 && !HasFailure(); ++round) {
    kind_.tidy(index_.get());
    std::this_thread::yield();
  }
  stop = true;
  for (std::thread& client : clients) client.join();
  const Status structure = index_->CheckStructure();
  EXPECT_TRUE(structure.ok()) << structure;
}

INSTANTIATE_TEST_SUITE_P(Cases, LeafCacheLimitTest,
                         testing::Combine(AllSharedLeafCases(), testing::Values(kSmall, kAmple)), [](const auto& test) {
                           return NameOf(std::get<0>(test.param)) +
                                  (std::get<1>(test.param) == kSmall ? "Small" : "Ample");
                         });

// DEX keeps inner nodes decoded.
class DexCacheSizeTest : public LeafCache, public testing::WithParamInterface<KeyKind> {
 protected:
  DexCacheSizeTest() : LeafCache({&kDex, GetParam()}) {}
};

TEST_P(DexCacheSizeTest, AnInnerNodeTakesFewBytesForEachChild) {
  constexpr size_t kLeafFrame[] = {384, 768};  // of integer keys, and of byte keys of up to 64 bytes
  // As it was loaded, and after inserts everywhere.
  for (int round = 0; round < 2; ++round) {
    const auto cache = kind_.make_cache(kAmple);
    ClientThread thread(&cluster_);
    auto remote = NewClientOf(&thread, cache);
    ScanResult all;
    const OwnedKey last = KeyOf(kStay * kDistance - 1);
    ASSERT_TRUE(thread.Await(remote->Scan({.from = KeyOf(0).view(), .to = last.view()}, &all)).ok());
    const size_t leaves = all.witnesses.size();
    const uint64_t bytes = cache->bytes();
    ASSERT_GT(bytes, leaves * kLeafFrame[GetParam() == KeyKind::kBytes]) << "all leaves are cached";
    EXPECT_LE(bytes - leaves * kLeafFrame[GetParam() == KeyKind::kBytes], 20 * leaves) << "round " << round;
    Work(cache, static_cast<uint64_t>(1 + round), true);
  }
}

INSTANTIATE_TEST_SUITE_P(Keys, DexCacheSizeTest, testing::Values(KeyKind::kInteger, KeyKind::kBytes),
                         [](const auto& keys) {
                           return std::string(keys.param == KeyKind::kInteger ? "Integers" : "Bytes");
                         });

}  // namespace leaf_cache_test
}  // namespace gannet::index
