// Fences of leaves of integer keys: midway between the neighbouring keys, so that the predicted range of a key at a
// border does not include the next leaf.
#include <algorithm>
#include <set>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/xstore/model/model.h"
#include "tests/index/record_helper.h"

namespace gannet::index::xstore {
namespace xstore_fence_test {

TEST(XStoreFence, LiesBetweenItsKeys) {
  const auto between = [](uint64_t a, uint64_t b) { return FenceBetween<1>(KeyKind::kInteger, {{a}}, {{b}}).words[0]; };
  EXPECT_EQ(between(0, 100), 49u);
  EXPECT_EQ(between(7, 8), 7u);
  EXPECT_EQ(between(7, 9), 7u);
  EXPECT_EQ(between(7, 10), 8u);
  EXPECT_EQ(between(0, UINT64_MAX), UINT64_MAX / 2);
  EXPECT_EQ(between(UINT64_MAX - 1, UINT64_MAX), UINT64_MAX - 1);
  // The fence of byte keys is at the left key.
  EXPECT_EQ(FenceBetween<1>(KeyKind::kBytes, {{5}}, {{500}}).words[0], 5u);
}

class XStoreFenceTest : public testing::Test {
 protected:
  XStoreFenceTest() {
    auto tree = Tree<1>::Create(cluster_.owner().service.get(), KeyKind::kInteger);
    EXPECT_TRUE(tree.ok()) << tree.status();
    tree_ = std::move(*tree);
    thread_ = std::make_unique<OwnerThread>(&cluster_);
  }
  void Load(const std::set<uint64_t>& keys, double fill) {
    std::vector<LoadEntry> entries;
    for (const uint64_t key : keys) entries.push_back({Key(key), FakeRecord(key)});
    EpochGuard guard(thread_->epoch());
    const Status status = tree_->BulkLoad(thread_->context(), entries, fill);
    ASSERT_TRUE(status.ok()) << status;
    keys_ = keys;
  }
  void Insert(uint64_t key) {
    EpochGuard guard(thread_->epoch());
    ASSERT_TRUE(tree_->Insert(thread_->context(), {{key}}, FakeRecord(key), nullptr).ok());
    keys_.insert(key);
  }
  uint64_t HighOf(uint64_t key) {
    EpochGuard guard(thread_->epoch());
    return tree_->Locate({{key}}).high().words[0];
  }
  // Finds and scans return exactly keys_, also around every border.
  void ExpectAllRight() {
    ASSERT_TRUE(tree_->CheckStructure().ok()) << tree_->CheckStructure();
    EpochGuard guard(thread_->epoch());
    std::set<uint64_t> probes = keys_;
    for (const uint64_t key : keys_) {
      const uint64_t high = HighOf(key);
      probes.insert({high, high + 1, key - 1, key + 1});
    }
    for (const uint64_t key : probes) {
      const FindResult found = tree_->Find({{key}});
      ASSERT_EQ(found.record, keys_.contains(key) ? FakeRecord(key) : rdma::GlobalAddress()) << key;
    }
    for (const bool reverse : {false, true}) {
      for (auto at = probes.begin(); at != probes.end();
           std::advance(at, std::min<ptrdiff_t>(17, std::distance(at, probes.end())))) {
        ExpectScan(*at, *at + 5000, reverse);
      }
    }
  }
  void ExpectScan(uint64_t from, uint64_t to, bool reverse) {
    if (to < from) return;
    ScanResult result;
    KeyWords<1> next;
    if (reverse) {
      tree_->ScanReverse({{from}}, {{to}}, SIZE_MAX, SIZE_MAX, &result, &next);
    } else {
      tree_->ScanForward({{from}}, {{to}}, SIZE_MAX, SIZE_MAX, &result, &next);
    }
    std::vector<uint64_t> expected(keys_.lower_bound(from), keys_.upper_bound(to));
    if (reverse) std::reverse(expected.begin(), expected.end());
    std::vector<uint64_t> got;
    for (const Entry& entry : result.entries) got.push_back(entry.key.integer());
    ASSERT_EQ(got, expected) << from;
  }
  // Number of leaves that a lookup of `key` READs; the right leaf must be among them.
  uint32_t LeavesFor(const Model<1>& model, uint64_t key) {
    EpochGuard guard(thread_->epoch());
    const uint32_t leaf = tree_->NumberOf(tree_->Locate({{key}}));
    const TopModel::Place place = model.top().Locate(KeyWords<1>{{key}});
    const SubModelLine line = model.LineOf(place.sub_model);
    const SubModel::Range range = line.model.Predict(place.x);
    bool found = false;
    for (uint32_t i = range.first; i <= range.last; ++i) {
      found |= TableEntry::Unpack(LoadWord(model.TableAt(line.table) + i * kWordBytes)).leaf == leaf;
    }
    EXPECT_TRUE(found) << key;
    return range.last - range.first + 1;
  }
  double MeanLeaves(const Model<1>& model) {
    double sum = 0;
    for (const uint64_t key : keys_) sum += LeavesFor(model, key);
    return sum / static_cast<double>(keys_.size());
  }

  IndexCluster cluster_{{}};
  std::unique_ptr<OwnerThread> thread_;
  std::unique_ptr<Tree<1>> tree_;
  std::set<uint64_t> keys_;
};

TEST_F(XStoreFenceTest, LoadedLeavesEndMidwayAndRegularKeysTakeOneLeafEach) {
  std::set<uint64_t> keys;
  for (uint64_t i = 0; i < 4000; ++i) keys.insert(i * 100);
  Load(keys, 0.5);
  for (uint64_t i = 0; i < 3992; ++i) ASSERT_EQ(HighOf(i * 100), (i / 8 * 8 + 7) * 100 + 49);
  ExpectAllRight();
  for (const uint32_t sub_models : {1u, 16u, 77u}) {
    const auto model = Model<1>::Train(tree_.get(), {}, 1, [sub_models](uint64_t) { return sub_models; });
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_LT(MeanLeaves(**model), 1.01) << sub_models;  // 1.125 if the border were the last key of a leaf
    for (uint64_t key = 0; key < 400'000; key += 33) LeavesFor(**model, key);
    LeavesFor(**model, UINT64_MAX);
  }
}

TEST_F(XStoreFenceTest, NeighboursLeaveNoRoomBetween) {
  std::set<uint64_t> keys;
  for (uint64_t i = 0; i < 1000; ++i) keys.insert(UINT64_MAX - i);
  keys.insert(0);
  Load(keys, 0.5);
  ExpectAllRight();
}

TEST_F(XStoreFenceTest, HalvesEndMidwayToo) {
  std::set<uint64_t> keys;
  for (uint64_t i = 0; i < 2000; ++i) keys.insert(i * 1000);
  Load(keys, 1.0);
  // One insert in the middle of each full leaf: its lower 8 of 17 keys stay.
  for (uint64_t leaf = 0; leaf < 125; ++leaf) {
    const uint64_t first = leaf * 16 * 1000;
    Insert(first + 4500);
    ASSERT_EQ(HighOf(first), first + 6000 + 499);
  }
  EXPECT_EQ(tree_->statistics().nodes, 250u);
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    const uint64_t key = random.Below(2'000'000);
    if (!keys_.contains(key)) Insert(key);
  }
  ExpectAllRight();
}

}  // namespace xstore_fence_test
}  // namespace gannet::index::xstore
