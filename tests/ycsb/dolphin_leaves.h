// Clients of one process in the leaves of an index of Dolphin whose entries have values.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/coro/worker.h"
#include "gtest/gtest.h"
#include "index/dolphin/dolphin.h"
#include "tests/index/record_helper.h"
#include "tests/ycsb/slow_channel.h"
#include "ycsb/leaf_queues.h"
#include "ycsb/read_delegation.h"
#include "ycsb/write_combiner.h"

namespace gannet::ycsb {

// A value, which stands where an index of records has an address.
inline rdma::GlobalAddress Value(uint64_t n) {
  return {0, (n + 1) * kLineBytes};
}
inline uint64_t NumberOf(rdma::GlobalAddress value) {
  return value.offset() / kLineBytes - 1;
}

class DolphinLeavesTest : public testing::Test {
 protected:
  static constexpr index::IndexId kId = 1;

  DolphinLeavesTest() : cluster_({}) {
    index::RegisterDolphinMethods(cluster_.owner().service.get());
    cluster_.Serve();
    owner_ = std::make_unique<index::OwnerThread>(&cluster_);
    auto index = index::CreateDolphin(cluster_.owner().service.get(), kId, index::KeyKind::kInteger);
    GANNET_CHECK(index.ok(), "%s", index.status().ToString());
    index_ = *std::move(index);
    // Every tenth key, in leaves that are half full.
    std::vector<index::LoadEntry> entries;
    for (uint64_t key = 0; key < 1000; key += 10) entries.push_back({index::Key(key), Value(key)});
    GANNET_CHECK(index_->BulkLoad(owner_->context(), entries, 0.5).ok(), "loaded");
  }

  // Has a worker of its own.
  struct Client {
    explicit Client(DolphinLeavesTest* test) : thread(&test->cluster_), channel(thread.channel()) {
      worker.AddPoller([this] { return channel.Poll(); });
      auto connected = index::ConnectDolphin(
          &channel, 0, kId, {.key_kind = index::KeyKind::kInteger, .shared = test->cache_, .values_in_entries = true});
      GANNET_CHECK(connected.ok(), "%s", connected.status().ToString());
      remote = *std::move(connected);
      auto* const dolphin = dynamic_cast<WriteCombiner::Index*>(remote.get());
      combiner.emplace(dolphin, &test->queues_, &worker);
      delegation.emplace(dolphin, &test->read_queues_, &worker);
    }
    void Insert(uint64_t key, uint64_t value) { worker.Spawn(Write(this, key, value, /*is_update=*/false)); }
    void Update(uint64_t key, uint64_t value) { worker.Spawn(Write(this, key, value, /*is_update=*/true)); }
    static coro::Task<void> Write(Client* client, uint64_t key, uint64_t value, bool is_update) {
      const uint64_t word = Value(value).bits();
      auto write = is_update ? client->combiner->Update(key, word) : client->combiner->Insert(key, word);
      const StatusOr<bool> combined = co_await std::move(write);
      Status status = combined.status();
      client->combined += combined.ok() && *combined ? 1 : 0;
      if (status.ok() && !*combined) {
        ++client->alone;
        if (is_update) {
          status = co_await client->remote->Replace(index::Key(key), {}, Value(value));
        } else {
          status = (co_await client->remote->Insert(index::Key(key), Value(value))).status();
        }
      }
      if (!status.ok()) client->errors.push_back(status);
    }
    // *found is the value of the key afterwards; nullopt: it is absent.
    void Find(uint64_t key, std::optional<uint64_t>* found) { worker.Spawn(Find(this, key, found)); }
    static coro::Task<void> Find(Client* client, uint64_t key, std::optional<uint64_t>* found) {
      const StatusOr<index::FindResult> result = co_await client->delegation->Find(key);
      if (!result.ok()) client->errors.push_back(result.status());
      if (result.ok() && !result->record.is_null()) *found = NumberOf(result->record);
    }

    index::ClientThread thread;
    SlowChannel channel;
    std::unique_ptr<index::RemoteIndex> remote;
    std::optional<WriteCombiner> combiner;
    std::optional<ReadDelegation> delegation;
    int combined = 0;
    int alone = 0;
    std::vector<Status> errors;
    coro::Worker worker;
  };

  std::map<uint64_t, uint64_t> Contents() {
    const Status structure = index_->CheckStructure();
    EXPECT_TRUE(structure.ok()) << structure;
    index::ScanResult all;
    EXPECT_TRUE(index_->Scan({.from = index::Key(uint64_t{0}), .to = index::Key(UINT64_MAX)}, &all).ok());
    std::map<uint64_t, uint64_t> contents;
    for (const index::Entry& entry : all.entries) {
      const auto [at, is_new] = contents.emplace(entry.key.integer(), NumberOf(entry.record));
      EXPECT_TRUE(is_new) << "key " << at->first << " twice";
    }
    return contents;
  }

  index::IndexCluster cluster_;
  std::shared_ptr<index::dolphin::SharedInner> cache_ = index::MakeDolphinCache();
  LeafQueues queues_;
  LeafQueues read_queues_{ReadDelegation::kMostReads};
  std::unique_ptr<index::OwnerThread> owner_;
  std::unique_ptr<index::LocalIndex> index_;
};

}  // namespace gannet::ycsb
