// XTree by itself: properties of its leaves that the common suite does not test.
#include <algorithm>
#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/xstore/tree/tree.h"
#include "tests/index/record_helper.h"

namespace gannet::index::xstore {
namespace xstore_tree_test {

class XStoreTreeTest : public testing::Test {
 protected:
  XStoreTreeTest() {
    auto tree = Tree<1>::Create(cluster_.owner().service.get(), KeyKind::kInteger);
    EXPECT_TRUE(tree.ok()) << tree.status();
    tree_ = std::move(*tree);
    thread_ = std::make_unique<OwnerThread>(&cluster_);
  }

  void Insert(uint64_t key) {
    EpochGuard guard(thread_->epoch());
    const auto change = tree_->Insert(thread_->context(), {{key}}, FakeRecord(key), nullptr);
    ASSERT_TRUE(change.ok()) << change.status();
  }
  void Remove(uint64_t key) {
    EpochGuard guard(thread_->epoch());
    const auto change = tree_->Remove(thread_->context(), {{key}}, FakeRecord(key));
    ASSERT_TRUE(change.ok()) << change.status();
  }
  std::vector<uint64_t> Scan(uint64_t from, uint64_t to, size_t limit, bool reverse) {
    EpochGuard guard(thread_->epoch());
    ScanResult result;
    KeyWords<1> next;
    if (reverse) {
      tree_->ScanReverse({{from}}, {{to}}, limit, SIZE_MAX, &result, &next);
    } else {
      tree_->ScanForward({{from}}, {{to}}, limit, SIZE_MAX, &result, &next);
    }
    std::vector<uint64_t> keys;
    for (const Entry& entry : result.entries) {
      EXPECT_EQ(entry.record, FakeRecord(entry.key.integer()));
      keys.push_back(entry.key.integer());
    }
    return keys;
  }
  void PassGracePeriod() {
    cluster_.PassGracePeriod();
    thread_->epoch()->Collect();
  }

  IndexCluster cluster_{{}};
  std::unique_ptr<OwnerThread> thread_;
  std::unique_ptr<Tree<1>> tree_;
};

TEST_F(XStoreTreeTest, AppendsLeaveFullLeaves) {
  for (uint64_t key = 0; key < 16000; ++key) Insert(key);
  EXPECT_EQ(tree_->statistics().nodes, 1000u);
  ASSERT_TRUE(tree_->CheckStructure().ok()) << tree_->CheckStructure();
}

TEST_F(XStoreTreeTest, InterleavedAppendsFillTheirLeavesToo) {
  // Ten districts whose orders arrive in turn, as in TPC-C.
  for (uint64_t order = 0; order < 6400; ++order) {
    for (uint64_t district = 0; district < 10; ++district) Insert(district << 32 | order);
  }
  EXPECT_LT(tree_->statistics().nodes, 4000u + 160u);
  ASSERT_TRUE(tree_->CheckStructure().ok()) << tree_->CheckStructure();
}

TEST_F(XStoreTreeTest, EmptyLeavesGoThoughWhoeverEmptiedThemIdles) {
  for (uint64_t key = 0; key < 4000; ++key) Insert(key);
  for (uint64_t key = 0; key < 4000; ++key) Remove(key);
  for (int i = 0; i < 50 && tree_->statistics().nodes > 1; ++i) cluster_.PassGracePeriod();
  EXPECT_EQ(tree_->statistics().nodes, 1u);
  ASSERT_TRUE(tree_->CheckStructure().ok()) << tree_->CheckStructure();
}

// A walk that counts waits at a leaf that is locked: what is retired meanwhile is not used again.
TEST_F(XStoreTreeTest, LeavesAreCountedInsideTheEpoch) {
  Leaf<1> leaf = tree_->Locate({{0}});
  const uint64_t state = leaf.state();
  ASSERT_TRUE(leaf.TryLock(state));
  std::thread walker([this] { EXPECT_EQ(tree_->statistics().nodes, 1u); });
  bool waits = false;
  for (int tries = 0; !waits && tries < 20'000; ++tries) {  // until the walk has begun
    const auto freed = std::make_shared<bool>(false);
    {
      EpochGuard guard(thread_->epoch());
      thread_->epoch()->RetireWith([freed] { *freed = true; });
    }
    PassGracePeriod();
    waits = !*freed;
    std::this_thread::yield();
  }
  leaf.Unlock(state);
  walker.join();
  EXPECT_TRUE(waits);
}

TEST_F(XStoreTreeTest, AQueueKeepsItsSize) {
  constexpr uint64_t kQueue = 1000;
  constexpr uint64_t kTurns = 100000;
  for (uint64_t key = 0; key < kQueue; ++key) Insert(key);
  Statistics most;
  for (uint64_t key = kQueue; key < kQueue + kTurns; ++key) {
    Insert(key);
    Remove(key - kQueue);
    if (key % 1000 != 0) continue;
    PassGracePeriod();
    const Statistics now = tree_->statistics();
    most.nodes = std::max(most.nodes, now.nodes);
    most.height = std::max(most.height, now.height);
    most.registered_bytes = std::max(most.registered_bytes, now.registered_bytes);
    most.private_bytes = std::max(most.private_bytes, now.private_bytes);
    ASSERT_EQ(Scan(0, UINT64_MAX, 1, false), std::vector<uint64_t>{key - kQueue + 1});
  }
  ASSERT_TRUE(tree_->CheckStructure().ok()) << tree_->CheckStructure();
  // 63 full leaves, and those that became empty in the last two grace periods.
  EXPECT_LE(most.nodes, 63u + 2 * 64u + 8u);
  EXPECT_LE(most.height, 4);
  EXPECT_LE(most.registered_bytes, 400u * rdma::SlabAllocator::BlockBytes(LeafLayout<1>::kBytes));
  EXPECT_LE(most.private_bytes, 64u * sizeof(InnerNode<1>));
}

TEST_F(XStoreTreeTest, EverythingRemovedLeavesOneLeaf) {
  std::vector<uint64_t> keys;
  for (uint64_t key = 0; key < 20000; ++key) keys.push_back(key * 7);
  Random random(3);
  for (int round = 0; round < 3; ++round) {
    std::shuffle(keys.begin(), keys.end(), random);
    for (const uint64_t key : keys) Insert(key);
    std::shuffle(keys.begin(), keys.end(), random);
    for (const uint64_t key : keys) Remove(key);
    ASSERT_TRUE(tree_->CheckStructure().ok()) << tree_->CheckStructure();
    for (int i = 0; i < 500 && tree_->statistics().nodes > 1; ++i) {
      PassGracePeriod();
      EpochGuard guard(thread_->epoch());
      tree_->UnlinkEmptyLeaves(thread_->context());
    }
    ASSERT_TRUE(tree_->CheckStructure().ok()) << tree_->CheckStructure();
    EXPECT_EQ(tree_->statistics().nodes, 1u);
    EXPECT_EQ(tree_->statistics().height, 2);
    EXPECT_TRUE(Scan(0, UINT64_MAX, SIZE_MAX, false).empty());
  }
}

TEST_F(XStoreTreeTest, ScansAgreeWithAModelWhileLeavesComeAndGo) {
  std::map<uint64_t, bool> model;
  Random random(4);
  for (int step = 0; step < 40000; ++step) {
    // A moving window: leaves become empty at one side and split at the other.
    const uint64_t key = static_cast<uint64_t>(step) / 8 + random.Below(800);
    if (model.contains(key)) {
      Remove(key);
      model.erase(key);
    } else {
      Insert(key);
      model[key] = true;
    }
    if (step % 500 == 0) {
      PassGracePeriod();
      ASSERT_TRUE(tree_->CheckStructure().ok()) << tree_->CheckStructure();
    }
    if (step % 20 != 0) continue;
    const uint64_t from = random.Below(6000);
    const uint64_t to = from + random.Below(2000);
    const size_t limit = random.OneIn(2) ? SIZE_MAX : 1 + random.Below(40);
    std::vector<uint64_t> expected;
    for (auto it = model.lower_bound(from); it != model.end() && it->first <= to; ++it) expected.push_back(it->first);
    std::vector<uint64_t> reversed(expected.rbegin(), expected.rend());
    if (expected.size() > limit) expected.resize(limit), reversed.resize(limit);
    ASSERT_EQ(Scan(from, to, limit, false), expected);
    ASSERT_EQ(Scan(from, to, limit, true), reversed);
  }
}

TEST_F(XStoreTreeTest, AnUnlinkedLeafIsAWitnessUntilAKeyComesIntoItsRange) {
  for (uint64_t key = 0; key < 64; ++key) Insert(key);
  for (uint64_t key = 16; key < 32; ++key) Remove(key);
  auto* guard = new EpochGuard(thread_->epoch());
  const Witness before = tree_->Find({{20}}).witness;
  ASSERT_TRUE(cluster_.Valid(before));
  delete guard;
  PassGracePeriod();
  {
    EpochGuard inside(thread_->epoch());
    tree_->UnlinkEmptyLeaves(thread_->context());
  }
  EXPECT_TRUE(cluster_.Valid(before));
  EpochGuard inside(thread_->epoch());
  const Witness after = tree_->Find({{20}}).witness;
  EXPECT_NE(after.word, before.word);
  ASSERT_TRUE(cluster_.Valid(after));
  ASSERT_TRUE(tree_->Insert(thread_->context(), {{20}}, FakeRecord(20), nullptr).ok());
  EXPECT_FALSE(cluster_.Valid(after));
  EXPECT_FALSE(cluster_.Valid(before));
}

TEST_F(XStoreTreeTest, WritersAndScansAtOnce) {
  // Keys divisible by 10 stay; the others come and go in a moving window, so that leaves split and die.
  constexpr uint64_t kStay = 4000;
  constexpr int kWriters = 2;
  for (uint64_t i = 0; i < kStay; ++i) Insert(i * 10);
  cluster_.StartEpochs();
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int writer = 0; writer < kWriters; ++writer) {
    threads.emplace_back([&, writer] {
      OwnerThread mine(&cluster_);
      Random random(static_cast<uint64_t>(writer));
      for (uint64_t round = 0; round < 12; ++round) {
        std::vector<uint64_t> keys;
        for (uint64_t i = 0; i < 2000; ++i) {
          const uint64_t key = (round * 3000 + i) * 10 % (kStay * 10) + 1 + static_cast<uint64_t>(writer);
          keys.push_back(key);
          EpochGuard guard(mine.epoch());
          ASSERT_TRUE(tree_->Insert(mine.context(), {{key}}, FakeRecord(key), nullptr).ok());
        }
        if (random.OneIn(2)) std::shuffle(keys.begin(), keys.end(), random);
        for (const uint64_t key : keys) {
          EpochGuard guard(mine.epoch());
          ASSERT_TRUE(tree_->Remove(mine.context(), {{key}}, FakeRecord(key)).ok());
        }
      }
    });
  }
  std::thread reader([&] {
    OwnerThread mine(&cluster_);
    Random random(9);
    while (!stop) {
      const uint64_t from = random.Below(kStay * 10);
      EpochGuard guard(mine.epoch());
      ScanResult result;
      KeyWords<1> next;
      const bool reverse = random.OneIn(2);
      if (reverse) {
        tree_->ScanReverse({{from}}, {{from + 3000}}, SIZE_MAX, SIZE_MAX, &result, &next);
        std::reverse(result.entries.begin(), result.entries.end());
      } else {
        tree_->ScanForward({{from}}, {{from + 3000}}, SIZE_MAX, SIZE_MAX, &result, &next);
      }
      uint64_t expected = (from + 9) / 10 * 10;
      uint64_t last = 0;
      for (const Entry& entry : result.entries) {
        const uint64_t key = entry.key.integer();
        ASSERT_TRUE(&entry == result.entries.data() || last < key);
        last = key;
        if (key % 10 != 0) continue;
        ASSERT_EQ(key, expected);
        expected += 10;
      }
      ASSERT_EQ(expected, std::min((from + 3000) / 10 + 1, kStay) * 10);
      const uint64_t key = random.Below(kStay) * 10;
      ASSERT_EQ(tree_->Find({{key}}).record, FakeRecord(key));
    }
  });
  for (std::thread& thread : threads) thread.join();
  stop = true;
  reader.join();
  EpochGuard guard(thread_->epoch());
  ASSERT_TRUE(tree_->CheckStructure().ok()) << tree_->CheckStructure();
  EXPECT_EQ(tree_->statistics().keys, kStay);
}

}  // namespace xstore_tree_test
}  // namespace gannet::index::xstore
