// The page cache of DEX: frames, its policy, and what other threads may see (index/dex/cache).
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "index/dex/cache/cooling_map.h"
#include "index/dex/cache/frames.h"
#include "index/dex/cache/inner_copy.h"
#include "index/dex/cache/leaf_copy.h"
#include "index/dex/cache/mapping_table.h"
#include "index/dex/cache/page_cache.h"
#include "index/dex/paths.h"
#include "index/shared_leaf/leaf/leaf_draft.h"

namespace gannet::index::dex {
namespace dex_cache_test {

using shared_leaf::IntegerEntry;
using shared_leaf::IntegerKeys;
using shared_leaf::LeafCopy;

constexpr rdma::NodeId kOwner = 1;
constexpr uint64_t kKeysPerLeaf = 16;
constexpr uint64_t kFanout = 16;

rdma::GlobalAddress At(uint64_t n) {
  return {kOwner, (n + 1) * shared_leaf::kLeafBytes};
}

// A tree of three levels whose nodes are not in any memory: node 0 is the root, then the inner nodes, then the leaves.
struct Tree {
  explicit Tree(uint64_t inner_nodes) : inner(inner_nodes), leaves(inner_nodes * kFanout) {}

  uint64_t keys() const { return leaves * kKeysPerLeaf; }
  rdma::GlobalAddress root() const { return At(0); }
  rdma::GlobalAddress inner_at(uint64_t n) const { return At(1 + n); }
  rdma::GlobalAddress leaf_at(uint64_t n) const { return At(1 + inner + n); }

  LeafCopy Root() const {
    return Node(root(), 2, 0, keys(), inner, [this](uint64_t n) { return inner_at(n); });
  }
  LeafCopy Inner(uint64_t n) const {
    constexpr uint64_t kKeys = kFanout * kKeysPerLeaf;
    return Node(inner_at(n), 1, n * kKeys, kKeys, kFanout, [&](uint64_t i) { return leaf_at(n * kFanout + i); });
  }
  // `version`: of its last change.
  LeafCopy Leaf(uint64_t n, uint64_t version = 1) const {
    LeafCopy leaf = Node(leaf_at(n), 0, n * kKeysPerLeaf, kKeysPerLeaf, kKeysPerLeaf,
                         [&](uint64_t i) { return rdma::GlobalAddress(kOwner, (n * kKeysPerLeaf + i + 1) << 6); });
    leaf.image.head.state = version;
    return leaf;
  }

  template <class Target>
  static LeafCopy Node(rdma::GlobalAddress address, uint8_t level, uint64_t low, uint64_t keys, uint64_t entries,
                       Target target) {
    GANNET_CHECK(entries <= IntegerEntry::kSlots, "%d entries in a node of %d", entries, IntegerEntry::kSlots);
    LeafCopy node;
    node.address = address;
    node.image = {};
    node.image.head.state = 1;
    node.image.head.low = low;
    node.image.head.high = low + keys - 1;
    node.image.head.slots = shared_leaf::LeafSlots{.bitmap = (uint64_t{1} << entries) - 1, .level = level}.Pack();
    for (auto& line : node.image.lines) line.version = kAbsentBit;
    for (uint64_t i = 0; i < entries; ++i) {
      node.image.set_entry(static_cast<int>(i), IntegerEntry{low + keys / entries * i, target(i).bits()});
    }
    return node;
  }

  uint64_t inner;
  uint64_t leaves;
};

// Reads like a client that READs what is missing.
class Client {
 public:
  Client(PageCache* cache, const Tree& tree, uint16_t number) : tree_(tree), paths_(cache, number) {
    paths_.set_root(tree.root());
  }
  // The nodes that it had to READ.
  int Read(uint64_t key) {
    LeafCopy leaf;
    if (shared_leaf::Grant grant; paths_.FindLeaf(key, &leaf, &grant)) {
      EXPECT_TRUE(Holds(leaf, key));
      return 0;
    }
    int reads = 0;
    const std::optional<blink::Start> start = paths_.StartFor(key, 0);
    const uint8_t above = start.has_value() ? start->above : 3;
    if (above > 2) paths_.Keep(tree_.Root());
    if (above > 1) paths_.Keep(tree_.Inner(key / kKeysPerLeaf / kFanout));
    paths_.KeepLeaf(tree_.Leaf(key / kKeysPerLeaf));
    return reads + above;
  }
  bool Holds(const LeafCopy& leaf, uint64_t key) const {
    const int slot = shared_leaf::FindSlot(leaf.image, key);
    return leaf.address == tree_.leaf_at(key / kKeysPerLeaf) && slot >= 0 &&
           leaf.image.entry<IntegerEntry>(slot).target == rdma::GlobalAddress(kOwner, (key + 1) << 6).bits();
  }
  Paths<IntegerKeys>& paths() { return paths_; }

 private:
  const Tree& tree_;
  Paths<IntegerKeys> paths_;
};

TEST(Frames, AreFoundOnlyWhereTheyBegin) {
  Frames frames(10 * Frames::kBlockBytes);
  std::vector<FrameId> rest;
  const std::optional<LatchedFrame> first = frames.TakeBlock(FrameSize::k384, &rest);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(rest.size(), 3u);
  FrameLook look;
  EXPECT_FALSE(frames.Look(first->id, &look)) << "it is latched";
  frames.Unlatch(*first, FrameWord::kLive);
  EXPECT_TRUE(frames.Look(first->id, &look));
  EXPECT_TRUE(frames.Unchanged(look));
  EXPECT_FALSE(frames.Look(first->id + 1, &look)) << "it is in the middle of a frame";
  EXPECT_FALSE(frames.Look(rest[0], &look)) << "it holds nothing";
  EXPECT_FALSE(frames.Look(first->id + Frames::kUnits, &look)) << "its block is not used";
  EXPECT_FALSE(frames.Look(kNoFrame - 1, &look)) << "it is behind all blocks";
}

TEST(Frames, AChangeShows) {
  Frames frames(2 * Frames::kBlockBytes);  // and a word for each: one block
  std::vector<FrameId> rest;
  const LatchedFrame frame = *frames.TakeBlock(FrameSize::k768, &rest);
  frames.Unlatch(frame, FrameWord::kLive);
  FrameLook look;
  ASSERT_TRUE(frames.Look(frame.id, &look));
  EXPECT_EQ(frames.TryLatch(frame.id, FrameWord{look.word.bits + FrameWord::kVersion}), std::nullopt);
  const std::optional<LatchedFrame> latched = frames.TryLatch(frame.id, look.word);
  ASSERT_TRUE(latched.has_value());
  EXPECT_EQ(frames.TryLatch(frame.id), std::nullopt) << "the latch is taken";
  EXPECT_FALSE(frames.Unchanged(look));
  frames.Unlatch(*latched, FrameWord::kLive);
  EXPECT_FALSE(frames.Unchanged(look)) << "something else may be there";
}

TEST(Frames, ABlockIsCutAnew) {
  Frames frames(2 * Frames::kBlockBytes);  // and a word for each: one block
  std::vector<FrameId> rest;
  std::vector<LatchedFrame> all = {*frames.TakeBlock(FrameSize::k384, &rest)};
  EXPECT_EQ(frames.TakeBlock(FrameSize::k384, &rest), std::nullopt) << "there is one block";
  frames.Unlatch(all[0], FrameWord::kLive);
  FrameLook look;
  ASSERT_TRUE(frames.Look(all[0].id, &look));
  ASSERT_TRUE(frames.TryLatch(all[0].id).has_value());
  for (const FrameId id : rest) ASSERT_TRUE(frames.TryLatch(id).has_value());
  const std::vector<LatchedFrame> fresh = frames.Recut(0, FrameSize::k256);
  ASSERT_EQ(fresh.size(), 6u);
  for (const LatchedFrame& frame : fresh) frames.Unlatch(frame, FrameWord::kLive);
  EXPECT_FALSE(frames.Unchanged(look)) << "its place is a frame again, but of another size";
  EXPECT_FALSE(frames.Look(6, &look)) << "a frame of 384 bytes began there";
  EXPECT_TRUE(frames.Look(4, &look));
}

TEST(MappingTable, HasEachNodeOnce) {
  MappingTable table(64);
  EXPECT_EQ(table.Find(77), kNoFrame);
  EXPECT_TRUE(table.Insert(77, 5));
  EXPECT_EQ(table.Find(77), 5u);
  EXPECT_FALSE(table.Insert(77, 6));
  EXPECT_FALSE(table.Insert(77, kComing));
  EXPECT_EQ(table.Find(77), 5u);
  table.Erase(77, 6);
  EXPECT_EQ(table.Find(77), 5u) << "another frame's entry";
  table.Erase(77, 5);
  EXPECT_EQ(table.Find(77), kNoFrame);
}

TEST(MappingTable, AFullBucketTakesNoMore) {
  MappingTable table(0);  // one bucket
  for (uint64_t node = 1; node <= 7; ++node) EXPECT_TRUE(table.Insert(node, static_cast<FrameId>(node)));
  EXPECT_FALSE(table.Insert(8, 8));
  table.Erase(3, 3);
  EXPECT_TRUE(table.Insert(8, 8));
}

TEST(MappingTable, AnAnnouncedCopyComesInItsOwnPlace) {
  MappingTable table(0);  // one bucket
  ASSERT_TRUE(table.Insert(77, kComing));
  EXPECT_EQ(table.Find(77), kComing);
  EXPECT_FALSE(table.Insert(77, 5)) << "another thread's copy";
  EXPECT_FALSE(table.Insert(77, kComing)) << "another thread's announcement";
  for (uint64_t node = 1; node <= 6; ++node) EXPECT_TRUE(table.Insert(node, static_cast<FrameId>(node)));
  EXPECT_TRUE(table.Insert(77, 5, /*announced=*/true)) << "it has a place, also in a full bucket";
  EXPECT_EQ(table.Find(77), 5u);
  EXPECT_FALSE(table.Insert(77, 6, /*announced=*/true)) << "it was not announced";
  table.Erase(77, kComing);
  EXPECT_EQ(table.Find(77), 5u) << "it has come";
}

TEST(CoolingMap, IsAQueueOfSix) {
  CoolingMap map(0);  // one bucket
  for (FrameId frame = 10; frame < 16; ++frame) EXPECT_EQ(map.Push(frame, frame), kNoFrame);
  EXPECT_EQ(map.Push(12, 12), kNoFrame) << "it is there already";
  EXPECT_EQ(map.Push(16, 16), 10u) << "the first one leaves";
  map.Remove(12, 12);
  for (const FrameId frame : {11, 13, 14, 15, 16}) EXPECT_EQ(map.Pop(0), frame);
  EXPECT_EQ(map.Pop(0), kNoFrame);
}

TEST(PageCache, ASearchTakesNoMappingTableBelowTheRoot) {
  const Tree tree(4);
  PageCache cache({.max_bytes = size_t{1} << 20});
  Client client(&cache, tree, cache.AddTree());
  EXPECT_EQ(client.Read(100), 3) << "root, inner node and leaf";
  EXPECT_EQ(client.Read(101), 0);
  EXPECT_EQ(client.Read(100 + kKeysPerLeaf), 1) << "another leaf below the same node";
  EXPECT_EQ(client.Read(3 * kFanout * kKeysPerLeaf), 2) << "another inner node";
  const FrameId root = cache.Find(tree.root());
  FrameLook look;
  ASSERT_TRUE(cache.frames().Look(root, &look));
  int swizzled = 0;
  for (size_t i = 0; i < look.place().children; ++i) {
    swizzled += cache.LeadsToFrame(PageCache::LoadLink(look.body(), i)) ? 1 : 0;
  }
  EXPECT_EQ(swizzled, 2);
}

TEST(PageCache, AnInnerNodeTakesLittle) {
  const auto children = InnerBody<IntegerKeys>::ChildrenOf(PageCache({.max_bytes = 8192}), Tree(1).Inner(0));
  const std::optional<FrameSize> size = InnerBody<IntegerKeys>::SizeFor(children);
  ASSERT_TRUE(size.has_value());
  EXPECT_LE(BytesOf(*size), 20 * kFanout);
}

TEST(PageCache, AChildFarAwayIsNotKept) {
  PageCache cache({.max_bytes = 8192});
  LeafCopy node = Tree(1).Inner(0);
  node.image.set_entry(
      5, IntegerEntry{node.image.entry<IntegerEntry>(5).key, rdma::GlobalAddress(kOwner, uint64_t{1} << 40).bits()});
  EXPECT_EQ(InnerBody<IntegerKeys>::ChildrenOf(cache, node).size, kFanout - 1);
  node.image.set_entry(6, IntegerEntry{node.image.entry<IntegerEntry>(6).key, At(3).bits() + 8});
  EXPECT_EQ(InnerBody<IntegerKeys>::ChildrenOf(cache, node).size, kFanout - 2) << "no node can be there";
}

TEST(PageCache, KeepsWithinItsBytesAndItsPolicy) {
  const Tree tree(16);  // 256 leaves, 96 KiB of frames
  const size_t bytes = 40'000;
  PageCache cache({.max_bytes = bytes});
  Client client(&cache, tree, cache.AddTree());
  Random random(1);
  for (int i = 0; i < 20'000; ++i) {
    // Half of the reads are of a tenth of the leaves.
    const uint64_t keys = random.OneIn(2) ? tree.keys() / 10 : tree.keys();
    client.Read(random.Below(keys));
  }
  EXPECT_LE(cache.bytes(), bytes);
  EXPECT_GT(cache.bytes(), bytes / 2);
  const PageCacheStatistics events = cache.statistics();
  EXPECT_GT(events.refused, 5 * (events.admitted - tree.leaves)) << "a new leaf has a chance of a tenth";
  EXPECT_GT(events.cooled, 100u);
  EXPECT_GT(events.delegated, 10u) << "inner nodes pass the choice on";
  EXPECT_GT(events.restored, 10u) << "hot leaves get a second chance";
  EXPECT_GT(events.evicted, 100u);
  // What is read often is there.
  int hot = 0;
  int cold = 0;
  for (int i = 0; i < 2000; ++i) {
    hot += client.paths().LevelsToRead(random.Below(tree.keys() / 10)) == 0 ? 1 : 0;
    cold += client.paths().LevelsToRead(tree.keys() / 10 + random.Below(tree.keys() * 9 / 10)) == 0 ? 1 : 0;
  }
  EXPECT_GT(hot, 1800);
  EXPECT_LT(cold, 800);
}

// If a copy is there and does not cool, so is the way that leads to it.
TEST(PageCache, ParentsStayWhileTheirChildrenAreHot) {
  const Tree tree(16);
  PageCache cache({.max_bytes = 30'000});
  Client client(&cache, tree, cache.AddTree());
  Random random(2);
  for (int i = 0; i < 5000; ++i) {
    client.Read(random.Below(tree.keys()));
    if (i % 50 != 0) continue;
    for (uint64_t n = 0; n < tree.leaves; ++n) {
      FrameLook leaf;
      const FrameId id = cache.Find(tree.leaf_at(n));
      if (id == kNoFrame || !cache.frames().Look(id, &leaf) || leaf.word.cooling()) continue;
      FrameLook parent;
      const FrameId above = cache.Find(tree.inner_at(n / kFanout));
      ASSERT_TRUE(above != kNoFrame && cache.frames().Look(above, &parent)) << n;
      EXPECT_FALSE(parent.word.cooling()) << n;
    }
  }
}

TEST(PageCache, BlocksAreCutAnewForNodesOfAnotherSize) {
  const Tree tree(16);
  PageCache cache({.max_bytes = 16'000, .leaf_admission = 1});
  // Leaves alone fill it.
  Paths<IntegerKeys> leaves(&cache, cache.AddTree());
  for (uint64_t n = 0; n < tree.leaves; ++n) leaves.KeepLeaf(tree.Leaf(n));
  Client client(&cache, tree, cache.AddTree());
  for (uint64_t n = 0; n < tree.inner; ++n) client.paths().Keep(tree.Inner(n));
  EXPECT_GT(cache.statistics().recut, 0u);
  FrameLook look;
  const FrameId last = cache.Find(tree.inner_at(tree.inner - 1));
  ASSERT_NE(last, kNoFrame);
  EXPECT_TRUE(cache.frames().Look(last, &look));
}

TEST(PageCache, WhatIsDroppedIsNotFound) {
  const Tree tree(2);
  PageCache cache({.max_bytes = size_t{1} << 20});
  const uint16_t number = cache.AddTree();
  Client client(&cache, tree, number);
  client.Read(5);
  const uint64_t bytes = cache.BytesOf(number);
  cache.Drop(nullptr, tree.leaf_at(0));
  EXPECT_EQ(cache.BytesOf(number), bytes - 384);
  EXPECT_EQ(client.paths().LevelsToRead(5), 1);
  EXPECT_EQ(client.Read(5), 1);
  cache.Drop(nullptr, tree.leaf_at(100));  // is not there
  client.paths().Drop(5, 1);
  EXPECT_EQ(client.paths().LevelsToRead(5), 2) << "no way leads to the leaf";
  EXPECT_EQ(client.Read(5), 2);
  EXPECT_EQ(client.Read(6), 0);
}

TEST(PageCache, TreesDoNotMix) {
  const Tree tree(2);
  PageCache cache({.max_bytes = size_t{1} << 20});
  Client one(&cache, tree, cache.AddTree());
  Client other(&cache, tree, cache.AddTree());
  one.Read(5);
  EXPECT_EQ(other.paths().LevelsToRead(5), 1) << "the same nodes, but of another tree";
}

// What LeafChannel says of a change by verbs.
shared_leaf::LeafWatch::Release ReleaseOf(rdma::GlobalAddress node, uint64_t mark,
                                          std::span<const rdma::Operation> operations) {
  return {.leaf = node, .before = 1, .after = 2, .noted = {.grant = 0, .mark = mark}, .operations = operations};
}

TEST(PageCache, AChangeOfALeafGoesIntoItsCopy) {
  const Tree tree(4);
  PageCache cache({.max_bytes = 1 << 20});
  Client client(&cache, tree, cache.AddTree());
  client.Read(5);
  const rdma::GlobalAddress at = tree.leaf_at(0);
  const std::optional<uint64_t> mark = client.paths().Weaken(at);
  ASSERT_TRUE(mark.has_value());
  shared_leaf::LeafDraft draft(at, tree.Leaf(0).image, OwnerBits(1, 0));
  draft.Replace(5, IntegerEntry{5, rdma::GlobalAddress(kOwner, 4096).bits()});
  shared_leaf::Posting posting;
  draft.AppendChange(&posting);
  const shared_leaf::Grant grant(1, 7);
  client.paths().TakeChange(ReleaseOf(at, *mark, posting.operations()), shared_leaf::kLeafBytes, grant);
  LeafCopy leaf;
  shared_leaf::Grant found;
  ASSERT_TRUE(client.paths().FindLeaf(5, &leaf, &found));
  EXPECT_EQ(found, grant);
  EXPECT_EQ(leaf.image.head, draft.image().head);
  for (int slot = 0; slot < static_cast<int>(kKeysPerLeaf); ++slot) {
    EXPECT_EQ(leaf.image.entry<IntegerEntry>(slot), draft.image().entry<IntegerEntry>(slot)) << slot;
  }
}

TEST(PageCache, ACopyThatAnotherChangeHasMarkedGetsNoGrant) {
  const Tree tree(4);
  PageCache cache({.max_bytes = 1 << 20});
  const uint16_t number = cache.AddTree();
  Client client(&cache, tree, number);
  Client other(&cache, tree, number);
  client.Read(5);
  const std::optional<uint64_t> mark = client.paths().Weaken(tree.leaf_at(0));
  ASSERT_TRUE(other.paths().Weaken(tree.leaf_at(0)).has_value());
  client.paths().TakeChange(ReleaseOf(tree.leaf_at(0), *mark, {}), shared_leaf::kLeafBytes, shared_leaf::Grant(1, 7));
  LeafCopy leaf;
  shared_leaf::Grant found;
  ASSERT_TRUE(client.paths().FindLeaf(5, &leaf, &found));
  EXPECT_TRUE(found.is_none());
}

// Separators are changed by the same code as leaves.
TEST(PageCache, AChangeOfAnInnerNodeTakesItsCopyOut) {
  const Tree tree(4);
  PageCache cache({.max_bytes = 1 << 20});
  Client client(&cache, tree, cache.AddTree());
  client.Read(5);
  const std::optional<uint64_t> mark = client.paths().Weaken(tree.inner_at(0));
  ASSERT_TRUE(mark.has_value());
  EXPECT_EQ(client.paths().LevelsToRead(5), 0) << "it is whole still";
  client.paths().TakeChange(ReleaseOf(tree.inner_at(0), *mark, {}), shared_leaf::kLeafBytes, shared_leaf::Grant());
  EXPECT_EQ(client.paths().LevelsToRead(5), 2);
}

TEST(PageCache, AChangeWaitsForACopyThatIsComing) {
  const Tree tree(4);
  PageCache cache({.max_bytes = 1 << 20});
  const uint16_t number = cache.AddTree();
  Client client(&cache, tree, number);
  client.Read(5);
  const rdma::GlobalAddress at = tree.leaf_at(0);
  ASSERT_TRUE(client.paths().Announce(at));
  EXPECT_FALSE(client.paths().Announce(at)) << "another thread's";
  EXPECT_FALSE(client.paths().Weaken(at).has_value());
  client.paths().KeepClaimed(tree.Leaf(0), shared_leaf::Grant(1, 7));
  EXPECT_TRUE(client.paths().HasClaimed(at, 1));
  EXPECT_TRUE(client.paths().Weaken(at).has_value());
  EXPECT_FALSE(client.paths().HasClaimed(at, 1));
}

// Threads read what others replace, evict and cut anew. What they find is one version of the right leaf.
TEST(PageCache, ManyThreads) {
  const Tree tree(16);
  PageCache cache({.max_bytes = 30'000, .leaf_admission = 0.5});
  const uint16_t number = cache.AddTree();
  std::atomic<uint64_t> found{0};
  std::vector<std::thread> threads;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      Client client(&cache, tree, number);
      Random random(seed);
      for (int i = 0; i < 40'000; ++i) {
        const uint64_t key = random.Below(random.OneIn(2) ? tree.keys() / 16 : tree.keys());
        LeafCopy leaf;
        shared_leaf::Grant grant;
        if (random.OneIn(8)) {
          // The version is in all words that a change writes: a mixture would show.
          leaf = tree.Leaf(key / kKeysPerLeaf, random.Below(1000));
          leaf.image.head.right = leaf.image.head.state;
          leaf.image.head.versions.back() = static_cast<uint32_t>(leaf.image.head.state);
          client.paths().KeepLeaf(leaf);
        } else if (random.OneIn(50)) {
          cache.Drop(nullptr, tree.leaf_at(key / kKeysPerLeaf));
        } else if (random.OneIn(100)) {
          client.paths().Drop(key, static_cast<uint8_t>(random.Below(3)));
        } else if (client.paths().FindLeaf(key, &leaf, &grant)) {
          found.fetch_add(1, std::memory_order_relaxed);
          ASSERT_TRUE(client.Holds(leaf, key));
          if (leaf.image.head.right != 0) {
            ASSERT_EQ(leaf.image.head.right, leaf.image.head.state);
            ASSERT_EQ(leaf.image.head.versions.back(), leaf.image.head.state);
          }
        } else {
          client.Read(key);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(found.load(), 10'000u);
  EXPECT_GT(cache.statistics().evicted, 100u);
  EXPECT_LE(cache.bytes(), 30'000u);
}

}  // namespace dex_cache_test
}  // namespace gannet::index::dex
