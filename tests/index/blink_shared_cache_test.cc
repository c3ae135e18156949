// The cache of inner nodes that the clients of a process share: in several threads, with a limit, while the tree grows.
#include <atomic>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/blink/blink.h"
#include "index/blink/shared_cache.h"
#include "tests/index/record_helper.h"

namespace gannet::index::blink {
namespace {

constexpr IndexId kId = 3;
constexpr uint64_t kStay = 40'000;    // keys that are always there
constexpr uint64_t kDistance = 1000;  // between them
constexpr size_t kSmall = 20'000;     // bytes of a cache that has room for a part of the nodes

rdma::GlobalAddress RecordOf(uint64_t key) {
  return {0, (uint64_t{1} << 20) + key % 4096 * kLineBytes};
}

class BlinkSharedCacheTest : public ::testing::Test {
 protected:
  BlinkSharedCacheTest() : cluster_({}) {
    RegisterBlinkMethods(cluster_.owner().service.get());
    cluster_.Serve();
    owner_ = std::make_unique<OwnerThread>(&cluster_);
    auto index = CreateBlink(cluster_.owner().service.get(), kId, KeyKind::kInteger);
    GANNET_CHECK(index.ok(), "%s", index.status().ToString());
    index_ = *std::move(index);
    std::vector<LoadEntry> entries;
    for (uint64_t i = 0; i < kStay; ++i) entries.push_back({Key(i * kDistance), RecordOf(i * kDistance)});
    const Status loaded = index_->BulkLoad(owner_->context(), entries, 1.0);
    GANNET_CHECK(loaded.ok(), "%s", loaded.ToString());
  }

  std::unique_ptr<RemoteIndex> Connect(ClientThread* thread, const std::shared_ptr<SharedNodes>& cache) {
    auto remote = ConnectBlink(thread->channel(), 0, kId, {.shared = cache});
    GANNET_CHECK(remote.ok(), "%s", remote.status().ToString());
    return *std::move(remote);
  }
  static void ReadAll(ClientThread* thread, RemoteIndex* remote) {
    for (uint64_t i = 0; i < kStay; ++i) {
      const auto found = thread->Await(remote->Find(Key(i * kDistance)));
      ASSERT_TRUE(found.ok()) << found.status();
      ASSERT_EQ(found->record, RecordOf(i * kDistance)) << i;
    }
  }

  // Lookups, scans, inserts and removals of the client's own keys, at least kOperations and until *stop.
  void Work(const std::shared_ptr<SharedNodes>& cache, uint64_t number, const std::atomic<bool>& stop) {
    constexpr int kOperations = 4000;
    ClientThread thread(&cluster_);
    auto remote = Connect(&thread, cache);
    Random random(number);
    std::set<uint64_t> own;
    for (int i = 0; (i < kOperations || !stop) && !HasFatalFailure(); ++i) {
      const uint64_t stays = random.Below(kStay) * kDistance;
      const uint64_t what = random.Below(8);
      if (what == 0) {
        ScanResult rows;
        const Status scanned = thread.Await(remote->Scan({.from = stays, .to = stays + 50 * kDistance}, &rows));
        ASSERT_TRUE(scanned.ok()) << scanned;
        uint64_t next = stays;
        for (const Entry& row : rows.entries) {
          const uint64_t key = row.key.integer();
          ASSERT_EQ(row.record, RecordOf(key));
          ASSERT_LE(key, next) << "a key that stays is missing";
          if (key == next) next += kDistance;
        }
      } else if (what <= 3) {
        const uint64_t key = stays + number + 10 * random.Below(90);
        const auto inserted = thread.Await(remote->Insert(Key(key), RecordOf(key)));
        ASSERT_EQ(inserted.ok(), own.insert(key).second) << inserted.status();
      } else if (what == 4 && !own.empty()) {
        auto at = own.lower_bound(stays);
        if (at == own.end()) at = own.begin();
        const auto removed = thread.Await(remote->Remove(Key(*at), RecordOf(*at)));
        ASSERT_TRUE(removed.ok()) << removed.status();
        own.erase(at);
      } else {
        const uint64_t key = stays + (random.OneIn(4) ? 999 : 0);  // 999 is never there
        const auto found = thread.Await(remote->Find(Key(key)));
        ASSERT_TRUE(found.ok()) << found.status();
        ASSERT_EQ(found->record, key == stays ? RecordOf(key) : rdma::GlobalAddress()) << key;
      }
    }
    EXPECT_EQ(remote->statistics().cache_bytes, 0u) << "it is not this client's alone";
  }

  IndexCluster cluster_;
  std::unique_ptr<OwnerThread> owner_;
  std::unique_ptr<LocalIndex> index_;
};

TEST_F(BlinkSharedCacheTest, WhatOneClientCachedTheOthersHave) {
  const auto cache = MakeBlinkCache();
  ClientThread first(&cluster_);
  auto remote = Connect(&first, cache);
  ReadAll(&first, remote.get());
  const uint64_t bytes = cache->bytes();
  EXPECT_GT(bytes, kStay);
  ClientThread second(&cluster_);
  auto other = Connect(&second, cache);
  const rdma::VerbCounters before = second.channel()->counters();
  ReadAll(&second, other.get());
  const rdma::VerbCounters used = second.channel()->counters() - before;
  EXPECT_EQ(used.calls, 1u) << "where the root is";
  EXPECT_EQ(used.reads, kStay) << "one leaf each";
  EXPECT_EQ(cache->bytes(), bytes);
}

TEST_F(BlinkSharedCacheTest, ALimitIsKept) {
  const auto cache = MakeBlinkCache(kSmall);
  ClientThread thread(&cluster_);
  auto remote = Connect(&thread, cache);
  ReadAll(&thread, remote.get());
  EXPECT_LE(cache->bytes(), kSmall);
  EXPECT_GT(cache->bytes(), kSmall / 2);
}

// No room for any node: each lookup comes from the root, and is right.
TEST_F(BlinkSharedCacheTest, ALimitOfOneByteIsSlowOnly) {
  const auto cache = MakeBlinkCache(1);
  ClientThread thread(&cluster_);
  auto remote = Connect(&thread, cache);
  for (uint64_t i = 0; i < kStay; i += 997) {
    const auto found = thread.Await(remote->Find(Key(i * kDistance)));
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->record, RecordOf(i * kDistance));
  }
  EXPECT_EQ(cache->bytes(), 0u);
}

class BlinkSharedCacheLimitTest : public BlinkSharedCacheTest, public testing::WithParamInterface<size_t> {};

TEST_P(BlinkSharedCacheLimitTest, AnswersAreRightWhileTheTreeAndTheCacheChange) {
  const auto cache = MakeBlinkCache(GetParam());
  std::vector<std::thread> clients;
  const std::atomic<bool> stop{true};  // after the least number of operations
  for (uint64_t i = 1; i <= 3; ++i) clients.emplace_back([&, i] { Work(cache, i, stop); });
  for (std::thread& client : clients) client.join();
  const Status structure = index_->CheckStructure();
  EXPECT_TRUE(structure.ok()) << structure;
}

INSTANTIATE_TEST_SUITE_P(, BlinkSharedCacheLimitTest, testing::Values(kSmall, SIZE_MAX),
                         [](const auto& instance) { return instance.param == kSmall ? "Small" : "Unlimited"; });

}  // namespace
}  // namespace gannet::index::blink
