// Shared by the tests of the hash index: a cluster with one hash index of integer keys, and keys chosen by their hash.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "index/hash/hash_client.h"
#include "index/hash/hash_index.h"
#include "index/hash/hash_rpc.h"
#include "tests/index/record_helper.h"

namespace gannet::index {

class HashTest : public testing::Test {
 protected:
  static constexpr IndexId kId = 5;

  // Uses a fixed seed, so that a test's keys share the buckets that it expects.
  void Start(uint64_t expected_keys, const IndexCluster::Options& options = {}) {
    StartWith({.expected_keys = expected_keys, .seed = KeyedHash::Seed{1, 2, 3, 4}}, options);
  }
  void StartWith(const HashOptions& hash_options, const IndexCluster::Options& options = {}) {
    cluster_ = std::make_unique<IndexCluster>(options);
    RegisterHashMethods(cluster_->owner().service.get());
    auto index = HashIndex::Create(cluster_->owner().service.get(), kId, hash_options);
    ASSERT_TRUE(index.ok()) << index.status();
    index_ = std::move(*index);
    cluster_->Serve();
    owner_ = std::make_unique<OwnerThread>(cluster_.get());
  }
  void TearDown() override {
    if (cluster_ != nullptr) cluster_->owner().node->Shutdown();
    owner_.reset();
    index_.reset();
    cluster_.reset();
  }

  std::unique_ptr<RemoteIndex> Connect(ClientThread* client, size_t location_cache_bytes = 0) {
    auto remote = ConnectHash(client->channel(), cluster_->owner().node->id(), kId,
                              {.location_cache_bytes = location_cache_bytes});
    EXPECT_TRUE(remote.ok()) << remote.status();
    return std::move(*remote);
  }

  StatusOr<Change> TryInsert(uint64_t key, rdma::GlobalAddress* record = nullptr) {
    EpochGuard guard(owner_->epoch());
    const rdma::GlobalAddress made = owner_->NewRecord(key);
    if (record != nullptr) *record = made;
    return index_->Insert(owner_->context(), key, made, nullptr);
  }
  rdma::GlobalAddress Insert(uint64_t key) {
    rdma::GlobalAddress record;
    const StatusOr<Change> change = TryInsert(key, &record);
    EXPECT_TRUE(change.ok()) << change.status();
    return record;
  }
  void Remove(uint64_t key, rdma::GlobalAddress record) {
    EpochGuard guard(owner_->epoch());
    const StatusOr<Change> change = index_->Remove(owner_->context(), key, record);
    EXPECT_TRUE(change.ok()) << change.status();
    owner_->RetireRecord(record);
  }
  // Makes everything retired so far free for reuse.
  void PassGracePeriod() {
    cluster_->PassGracePeriod();
    owner_->epoch()->Collect();
  }
  void ExpectSound() {
    EpochGuard guard(owner_->epoch());
    const Status status = index_->CheckStructure();
    EXPECT_TRUE(status.ok()) << status;
  }

  // The first `count` numbers from `from` whose hash satisfies the condition.
  std::vector<uint64_t> KeysWhere(size_t count, const std::function<bool(hash::KeyHash)>& condition,
                                  uint64_t from = 0) {
    std::vector<uint64_t> keys;
    for (uint64_t key = from; keys.size() < count; ++key) {
      if (condition(index_->HashOf(key))) keys.push_back(key);
    }
    return keys;
  }
  std::vector<uint64_t> KeysOfOneTag(size_t count) {
    return KeysWhere(count, [](hash::KeyHash hash) { return hash.tag() == 0x1234; });
  }
  // Keys that no split separates: their paths are equal.
  std::vector<uint64_t> InseparableKeys(size_t count) {
    return KeysWhere(count, [](hash::KeyHash hash) { return hash.path() == 7; });
  }

  std::unique_ptr<IndexCluster> cluster_;
  std::unique_ptr<HashIndex> index_;
  std::unique_ptr<OwnerThread> owner_;
};

}  // namespace gannet::index
