// Empty leaves are unlinked while other threads insert into them, or load the tree again, in a simulation whose threads
// lose their cores at critical moments.
#include <array>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/sometimes.h"
#include "gtest/gtest.h"
#include "index/service.h"
#include "index/witness_word.h"
#include "index/xstore/tree/tree.h"
#include "rdma/sim/sim_fabric.h"

namespace gannet::index::xstore {
namespace xstore_unlink_test {

constexpr uint64_t kKeys = 1024;
constexpr int kWorkers = 4;
constexpr int kFillings = 40;
constexpr int kChanges = 600;  // per worker, after a filling
constexpr uint64_t kApartNanos = 40'000;
constexpr uint64_t kLooks = 2000;  // per reader
constexpr uint64_t kLongLookNanos = 10'000'000;

rdma::GlobalAddress RecordOf(uint64_t key) {
  return {0, 64 * (key + 1)};
}

class XStoreUnlinkTest : public testing::Test {
 protected:
  XStoreUnlinkTest() : simulation_({.seed = 1, .faults = {.preempt = 0.3, .preempt_nanos = 50'000}}) {
    fabric_ = rdma::sim::SimFabric::Create(&simulation_, {.bytes_per_node = uint64_t{64} << 20}).value();
    node_ = fabric_->Attach(0).value();
    slab_ = std::make_unique<rdma::SlabAllocator>(node_.get());
    epochs_ = rdma::EpochManager::Create(fabric_.get(), node_.get(), slab_.get()).value();
    service_ = std::make_unique<IndexService>(node_.get(), slab_.get(), epochs_.get());
    tree_ = Tree<1>::Create(service_.get(), KeyKind::kInteger).value();
  }

  // A key that is already present, or already absent, stays so.
  void Change(uint64_t key, bool inserts) {
    IndexService::Guard guard(service_.get());
    if (inserts) {
      const auto change = tree_->Insert(guard.context(), {{key}}, RecordOf(key), nullptr);
      EXPECT_TRUE(change.ok() || absl::IsAlreadyExists(change.status())) << change.status();
    } else {
      const auto change = tree_->Remove(guard.context(), {{key}}, RecordOf(key));
      EXPECT_TRUE(change.ok() || absl::IsNotFound(change.status())) << change.status();
    }
  }

  // Inserts and removes all keys. Then inserts and removes single keys in leaves that are empty.
  void Work(uint64_t worker) {
    Random random(worker);
    for (int filling = 0; filling < kFillings; ++filling) {
      for (uint64_t key = worker; key < kKeys; key += kWorkers) Change(key, true);
      for (uint64_t key = worker; key < kKeys; key += kWorkers) Change(key, false);
      for (int i = 0; i < kChanges; ++i) {
        const uint64_t key = random.Below(kKeys / kWorkers) * kWorkers + worker;
        Change(key, true);
        Change(key, false);
        SleepForNanos(random.Below(kApartNanos));
      }
    }
  }

  // Misses keys, as a transaction does, and validates that later. A key that came meanwhile has changed the witness,
  // whatever became of the leaf. `*survived`: how often the key's leaf was unlinked meanwhile, and no key came.
  void Look(uint64_t seed, uint64_t* survived) {
    Random random(seed);
    for (uint64_t i = 0; i < kLooks; ++i) {
      IndexService::Guard guard(service_.get());
      const KeyWords<1> key{{random.Below(kKeys)}};
      const FindResult miss = tree_->Find(key);
      if (!miss.record.is_null()) continue;
      SleepForNanos(random.Below(random.OneIn(2) ? kApartNanos : kLongLookNanos));
      const FindResult again = tree_->Find(key);
      PreemptionPoint();
      const std::byte* const word = node_->memory().data() + miss.witness.word.offset();
      if (!IsSameSet(LoadWord(word), miss.witness.seen)) continue;
      EXPECT_TRUE(again.record.is_null()) << "key " << key.words[0];
      if (again.witness.word != miss.witness.word) ++*survived;
    }
  }

  rdma::sim::Simulation simulation_;
  std::unique_ptr<rdma::sim::SimFabric> fabric_;
  std::unique_ptr<rdma::Node> node_;
  std::unique_ptr<rdma::SlabAllocator> slab_;
  std::unique_ptr<rdma::EpochManager> epochs_;
  std::unique_ptr<IndexService> service_;
  std::unique_ptr<Tree<1>> tree_;
};

TEST_F(XStoreUnlinkTest, AnEmptyLeafThatIsLockedOrFilledAgainStays) {
  ASSERT_TRUE(epochs_->Start().ok());
  std::vector<Runtime::Thread*> threads;
  for (uint64_t worker = 0; worker < kWorkers; ++worker) {
    threads.push_back(simulation_.StartOn(0, "worker", [this, worker] { Work(worker); }));
  }
  std::array<uint64_t, 2> survived{};
  for (size_t i = 0; i < survived.size(); ++i) {
    threads.push_back(simulation_.StartOn(0, "reader", [this, i, &survived] { Look(100 + i, &survived[i]); }));
  }
  for (Runtime::Thread* const thread : threads) simulation_.Join(thread);
  epochs_->Stop();
  EXPECT_TRUE(tree_->CheckStructure().ok()) << tree_->CheckStructure();
  EXPECT_GT(Mark::Reached("xstore: an empty leaf's range goes to the left"), 0u);
  EXPECT_GT(Mark::Reached("xstore: an empty leaf is locked or filled again"), 0u);
  EXPECT_GT(Mark::Reached("xstore: a change of a leaf changes its shadows, too"), 0u);
  EXPECT_GT(survived[0] + survived[1], 0u);
}

// The thread that takes the last empty leaf out of the tree may still be about to replace the root.
TEST_F(XStoreUnlinkTest, ALoadWaitsForTheEndOfAnUnlinking) {
  constexpr int kLoads = 20;
  constexpr uint64_t kUnlinkingNanos = 200'000;
  constexpr uint64_t kLookEveryNanos = 5'000;
  bool unlinking = false;
  int told = 0;
  tree_->SetListener([&](const KeyWords<1>&, const KeyWords<1>&) {
    ++told;
    unlinking = true;
    SleepForNanos(kUnlinkingNanos);
    unlinking = false;
  });
  ASSERT_TRUE(epochs_->Start().ok());
  simulation_.Join(simulation_.StartOn(0, "loader", [&] {
    Random random(7);
    for (int i = 0; i < kLoads; ++i) {
      const uint64_t keys = 1 + random.Below(kKeys);
      std::vector<LoadEntry> entries;
      for (uint64_t key = 0; key < keys; ++key) entries.push_back({Key(key), RecordOf(key)});
      Status loaded = absl::FailedPreconditionError("not tried");
      while (absl::IsFailedPrecondition(loaded)) {
        SleepForNanos(kLookEveryNanos);
        IndexService::Guard guard(service_.get());
        loaded = tree_->BulkLoad(guard.context(), entries, kLoadFill);
        ASSERT_FALSE(loaded.ok() && unlinking) << "load " << i;
      }
      ASSERT_TRUE(loaded.ok()) << loaded;
      for (uint64_t key = 0; key < keys; ++key) {
        const IndexService::Guard guard(service_.get());
        ASSERT_EQ(tree_->Find({{key}}).record, RecordOf(key)) << "load " << i;
      }
      for (uint64_t key = 0; key < keys; ++key) Change(key, false);
    }
  }));
  epochs_->Stop();
  tree_->RemoveListener();
  EXPECT_GT(told, 2 * kLoads);  // each load tells it, too
  EXPECT_TRUE(tree_->CheckStructure().ok()) << tree_->CheckStructure();
}

}  // namespace xstore_unlink_test
}  // namespace gannet::index::xstore
