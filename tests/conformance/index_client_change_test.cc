// Kinds whose clients change the index (IndexTraits::client_writes): clients of two nodes change it by verbs, while the
// owner changes it, too.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/conformance/index_suite.h"

namespace gannet::index {
namespace index_client_change_test {

constexpr int kChangers = 4;  // clients of node 1, of node 1 and of node 0; the owner
constexpr uint64_t kKeys = 1200;
constexpr uint64_t kContended = 60;

// One of them. A client reads and changes the index by verbs, also one at the owner's node. Used by one thread.
class Changer {
 public:
  Changer(IndexCluster* cluster, LocalIndex* local, int self, const IndexFactory& factory,
          const IndexFactory::Shape& shape)
      : owner_(cluster), local_(local) {
    if (self == kChangers - 1) return;
    IndexCluster::Member& member = self < 2 ? cluster->client() : cluster->owner();
    auto channel = member.node->OpenChannel();
    EXPECT_TRUE(channel.ok()) << channel.status();
    channel_ = std::move(*channel);
    worker_.AddPoller([this] { return channel_->Poll(); });
    auto remote = factory.connect(channel_.get(), /*owner=*/0, shape);
    EXPECT_TRUE(remote.ok()) << remote.status();
    remote_ = std::move(*remote);
  }

  // Resources of the owner's process, for records.
  OwnerThread& owner() { return owner_; }

  rdma::GlobalAddress Find(const Key& key) {
    if (remote_ == nullptr) return local_->Find(key).record;
    StatusOr<FindResult> found = worker_.BlockOn(FindOf(remote_.get(), key));
    if (found.ok() && found->from_cache) {  // may have left the index
      remote_->Forget(key);
      found = worker_.BlockOn(FindOf(remote_.get(), key));
    }
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? found->record : rdma::GlobalAddress();
  }
  Status Insert(const Key& key, rdma::GlobalAddress record) {
    if (remote_ == nullptr) return local_->Insert(owner_.context(), key, record, nullptr).status();
    return worker_.BlockOn(remote_->Insert(key, record)).status();
  }
  Status Remove(const Key& key, rdma::GlobalAddress record) {
    if (remote_ == nullptr) return local_->Remove(owner_.context(), key, record).status();
    return worker_.BlockOn(remote_->Remove(key, record)).status();
  }
  Status Replace(const Key& key, rdma::GlobalAddress from, rdma::GlobalAddress to) {
    if (remote_ == nullptr) return local_->Replace(key, from, to);
    return worker_.BlockOn(remote_->Replace(key, from, to));
  }
  Status Scan(const ScanRange& range, ScanResult* result) {
    if (remote_ == nullptr) return local_->Scan(range, result);
    return worker_.BlockOn(remote_->Scan(range, result));
  }

 private:
  static coro::Task<StatusOr<FindResult>> FindOf(RemoteIndex* remote, Key key) { co_return co_await remote->Find(key); }

  OwnerThread owner_;
  LocalIndex* local_;
  std::unique_ptr<rdma::Channel> channel_;
  coro::Worker worker_;
  std::unique_ptr<RemoteIndex> remote_;  // null: the owner's changes
};

// Changes the keys whose number is `self` modulo kChangers, and compares each with the model.
void ChangeOwnKeys(Changer* changer, IndexCluster* cluster, const IndexCase& test, int self, int operations,
                   Model* mine) {
  Random random(static_cast<uint64_t>(300 + self));
  for (int i = 0; i < operations; ++i) {
    // Waves, so that leaves split and merge.
    const bool grows = i / 400 % 2 == 0;
    const OwnedKey key = test.KeyOf(random.Below(kKeys / kChangers) * kChangers + static_cast<uint64_t>(self));
    EpochGuard guard(changer->owner().epoch());
    const rdma::GlobalAddress found = changer->Find(key.view());
    const auto at = mine->find(key);
    if (at == mine->end()) {
      // A client knows some kinds' records only by a tag, which may be that of another key.
      ASSERT_TRUE(found.is_null() || !RecordHoldsKey(cluster->At(found), key.view())) << key.view().ToString();
      if (!grows && !random.OneIn(4)) continue;
      const rdma::GlobalAddress record = changer->owner().NewRecord(key.view());
      const Status inserted = changer->Insert(key.view(), record);
      ASSERT_TRUE(inserted.ok()) << inserted;
      ASSERT_TRUE(absl::IsAlreadyExists(changer->Insert(key.view(), record)));
      mine->emplace(key, record);
      continue;
    }
    ASSERT_EQ(found, at->second) << key.view().ToString();
    if (random.OneIn(3)) {
      const rdma::GlobalAddress record = changer->owner().NewRecord(key.view());
      const Status replaced = changer->Replace(key.view(), at->second, record);
      ASSERT_TRUE(replaced.ok()) << replaced;
      ASSERT_TRUE(absl::IsNotFound(changer->Replace(key.view(), at->second, record)));
      changer->owner().RetireRecord(std::exchange(at->second, record));
    } else if (!grows || random.OneIn(4)) {
      const Status removed = changer->Remove(key.view(), at->second);
      ASSERT_TRUE(removed.ok()) << removed;
      ASSERT_TRUE(absl::IsNotFound(changer->Remove(key.view(), at->second)));
      changer->owner().RetireRecord(at->second);
      mine->erase(at);
    }
  }
}

// What was counted by one of several that change the same keys.
struct Counts {
  uint64_t inserted = 0;
  uint64_t removed = 0;
  uint64_t replaced = 0;
  uint64_t lost = 0;  // somebody else was faster
};

void ChangeSharedKeys(Changer* changer, IndexCluster* cluster, const IndexCase& test, int self, int operations,
                      Counts* counts) {
  Random random(static_cast<uint64_t>(400 + self));
  for (int i = 0; i < operations; ++i) {
    const OwnedKey key = test.KeyOf(random.Below(kContended));
    EpochGuard guard(changer->owner().epoch());
    rdma::GlobalAddress found = changer->Find(key.view());
    if (!found.is_null() && !RecordHoldsKey(cluster->At(found), key.view())) found = {};
    if (found.is_null()) {
      const rdma::GlobalAddress record = changer->owner().NewRecord(key.view());
      const Status status = changer->Insert(key.view(), record);
      ASSERT_TRUE(status.ok() || absl::IsAlreadyExists(status)) << status;
      counts->inserted += status.ok() ? 1 : 0;
      counts->lost += status.ok() ? 0 : 1;
      if (!status.ok()) changer->owner().RetireRecord(record);
    } else if (random.OneIn(2)) {
      const rdma::GlobalAddress record = changer->owner().NewRecord(key.view());
      const Status status = changer->Replace(key.view(), found, record);
      ASSERT_TRUE(status.ok() || absl::IsNotFound(status)) << status;
      counts->replaced += status.ok() ? 1 : 0;
      counts->lost += status.ok() ? 0 : 1;
      changer->owner().RetireRecord(status.ok() ? found : record);
    } else {
      const Status status = changer->Remove(key.view(), found);
      ASSERT_TRUE(status.ok() || absl::IsNotFound(status)) << status;
      counts->removed += status.ok() ? 1 : 0;
      counts->lost += status.ok() ? 0 : 1;
      if (status.ok()) changer->owner().RetireRecord(found);
    }
    if (i % 16 != 0) continue;
    ScanResult result;
    const OwnedKey least = test.KeyOf(0);
    const OwnedKey greatest = test.KeyOf(UINT64_MAX);
    const Status scanned = changer->Scan({.from = least.view(), .to = greatest.view()}, &result);
    ASSERT_TRUE(scanned.ok()) << scanned;
    for (size_t n = 1; n < result.entries.size(); ++n) {
      ASSERT_TRUE(result.entries[n - 1].key.view() < result.entries[n].key.view());
    }
  }
}

// Runs `change` for each changer, in a thread of its own.
template <class Change>
void RunAll(IndexCluster* cluster, LocalIndex* local, const IndexFactory& factory, const IndexFactory::Shape& shape,
            const Change& change) {
  std::vector<std::thread> threads;
  for (int self = 0; self < kChangers; ++self) {
    threads.emplace_back([&, self] {
      Changer changer(cluster, local, self, factory, shape);
      change(&changer, self);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_P(IndexSuite, ClientsOfTwoNodesAndTheOwnerLoseNothing) {
  if (!GetParam().factory.client_writes) GTEST_SKIP() << "clients do not change this kind";
  for (const bool adversarial : {false, true}) {
    Start(kKeys, {.adversarial = adversarial});
    if (cluster_->client_process() != nullptr) GTEST_SKIP() << "both clients must be in this process";
    cluster_->StartEpochs();
    std::vector<Model> models(kChangers);
    RunAll(cluster_.get(), index_.get(), GetParam().factory, shape_, [&](Changer* changer, int self) {
      ChangeOwnKeys(changer, cluster_.get(), GetParam(), self, adversarial ? 800 : 2000,
                    &models[static_cast<size_t>(self)]);
    });
    model_.clear();
    for (const Model& model : models) model_.insert(model.begin(), model.end());
    EXPECT_GT(model_.size(), 20u);
    ExpectSameAsModel();
    if (HasFailure()) return;
    TearDown();
  }
}

// A client that has the whole index in one node of its cache, and makes it many.
TEST_P(IndexSuite, AClientLetsAnIndexGrow) {
  if (!GetParam().factory.client_writes) GTEST_SKIP() << "clients do not change this kind";
  Start(0);
  cluster_->StartEpochs();
  OwnerThread records(cluster_.get());
  ClientThread client(cluster_.get());
  const auto remote = Connect(&client);
  for (uint64_t n = 0; n < 100; ++n) {
    const OwnedKey key = KeyOf(n);
    EpochGuard guard(&client);
    ASSERT_TRUE(client.Find(remote.get(), key.view())->record.is_null());
    const rdma::GlobalAddress record = records.NewRecord(key.view());
    ASSERT_TRUE(client.Await(remote->Insert(key.view(), record)).ok());
    model_.emplace(key, record);
    for (const auto& [known, at] : model_) ASSERT_EQ(client.Find(remote.get(), known.view())->record, at) << n;
  }
  ExpectSameAsModel();
}

TEST_P(IndexSuite, OneOfManyChangersOfAKeyWins) {
  if (!GetParam().factory.client_writes) GTEST_SKIP() << "clients do not change this kind";
  for (const bool adversarial : {false, true}) {
    Start(kContended, {.adversarial = adversarial});
    if (cluster_->client_process() != nullptr) GTEST_SKIP() << "both clients must be in this process";
    cluster_->StartEpochs();
    std::vector<Counts> counts(kChangers);
    RunAll(cluster_.get(), index_.get(), GetParam().factory, shape_, [&](Changer* changer, int self) {
      ChangeSharedKeys(changer, cluster_.get(), GetParam(), self, adversarial ? 300 : 1000,
                       &counts[static_cast<size_t>(self)]);
    });
    Counts all;
    for (const Counts& each : counts) {
      all.inserted += each.inserted;
      all.removed += each.removed;
      all.replaced += each.replaced;
      all.lost += each.lost;
    }
    EXPECT_GT(all.removed, 0u);
    EXPECT_GT(all.replaced, 0u);
    EXPECT_EQ(index_->statistics().keys, all.inserted - all.removed);
    const Status structure = index_->CheckStructure();
    EXPECT_TRUE(structure.ok()) << structure;
    for (uint64_t n = 0; n < kContended; ++n) {
      const OwnedKey key = KeyOf(n);
      EpochGuard guard(main_->epoch());
      const rdma::GlobalAddress record = index_->Find(key.view()).record;
      EXPECT_TRUE(record.is_null() || RecordHoldsKey(cluster_->At(record), key.view()));
    }
    if (HasFailure()) return;
    TearDown();
  }
}

}  // namespace index_client_change_test
}  // namespace gannet::index
