// InnerNode: searches against a sorted list, with keys that share their heads.
#include <algorithm>
#include <memory>
#include <vector>

#include "base/random.h"
#include "gtest/gtest.h"
#include "index/xstore/tree/inner_node.h"

namespace gannet::index::xstore {
namespace xstore_node_test {

template <int W>
using Keys = std::vector<KeyWords<W>>;

// The child of a node with these separators that covers `key`.
template <int W>
int Expected(const Keys<W>& separators, const KeyWords<W>& key) {
  return static_cast<int>(
      std::ranges::lower_bound(separators, key, [](const auto& a, const auto& b) { return a < b; }) -
      separators.begin());
}

// A node whose children are numbered from 1, with the separators between them.
template <int W>
void Fill(const Keys<W>& separators, InnerNode<W>* node) {
  node->Reset(1);
  node->Append(KeyWords<W>::Highest(), 1);
  for (size_t i = 0; i < separators.size(); ++i) node->Append(separators[i], i + 2);
}

template <int W>
void ExpectSearches(const Keys<W>& separators, const InnerNode<W>& node, const Keys<W>& keys) {
  for (const KeyWords<W>& key : keys) {
    const int child = node.Search(key);
    ASSERT_EQ(child, Expected<W>(separators, key));
    ASSERT_EQ(node.SearchBlock(node.FindBlock(key), key), child);
  }
}

// Keys of few values in each word: many share their heads. `heads` 1: all do.
template <int W>
KeyWords<W> RandomKey(Random& random, uint64_t heads) {
  KeyWords<W> key;
  for (uint64_t& word : key.words) word = random.Below(4);
  // The highest head occurs, too: it is that of the last key of a node.
  key.words[0] = ~uint64_t{0} - random.Below(heads) - (W == 1 ? 1 : 0);
  return key;
}

TEST(InnerNodeDeathTest, AFullNodeAndAKeyOutOfRangeStopTheProgram) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  InnerNode<1> node;
  Keys<1> separators;
  for (uint64_t i = 1; i < InnerNode<1>::kFanout; ++i) separators.push_back({{10 * i}});
  Fill<1>(separators, &node);
  EXPECT_DEATH(node.InsertAfter(0, {{5}}, 99), "child 0 of .* splits out of its range");
  node.Remove(1);
  EXPECT_DEATH(node.InsertAfter(0, {{25}}, 99), "child 0 of .* splits out of its range");
  node.InsertAfter(0, {{5}}, 99);
  EXPECT_EQ(node.child(1), 99u);
}

template <int W>
void CheckNodes() {
  SCOPED_TRACE(W);
  Random random(static_cast<uint64_t>(W));
  auto node = std::make_unique<InnerNode<W>>();
  for (const uint64_t heads : {1, 2, 5, 20, 1000}) {
    for (int round = 0; round < 60; ++round) {
      Keys<W> separators(random.Below(InnerNode<W>::kFanout));
      for (auto& separator : separators) separator = RandomKey<W>(random, heads);
      std::ranges::sort(separators, [](const auto& a, const auto& b) { return a < b; });
      separators.erase(std::unique(separators.begin(), separators.end()), separators.end());
      Keys<W> keys = separators;
      for (int i = 0; i < 100; ++i) keys.push_back(RandomKey<W>(random, heads));
      keys.push_back(KeyWords<W>::Lowest());
      keys.push_back(KeyWords<W>::Highest());
      Fill<W>(separators, node.get());
      ExpectSearches<W>(separators, *node, keys);
      if (separators.empty()) continue;
      // The node loses one child, whose left neighbour covers its keys now.
      const size_t removed = 1 + random.Below(separators.size());
      node->Remove(static_cast<int>(removed));
      separators.erase(separators.begin() + static_cast<ptrdiff_t>(removed) - 1);
      ExpectSearches<W>(separators, *node, keys);
      // The node gets one more child.
      const KeyWords<W> added = RandomKey<W>(random, heads);
      if (std::ranges::find(separators, added) == separators.end()) {
        const int at = Expected<W>(separators, added);
        node->InsertAfter(at, added, 1000);
        separators.insert(separators.begin() + at, added);
        ASSERT_EQ(node->child(at + 1), 1000u);
        ExpectSearches<W>(separators, *node, keys);
      }
      // The upper half of the node moves to another node.
      const int count = node->count();
      if (count < 2) continue;
      auto right = std::make_unique<InnerNode<W>>();
      right->Reset(1);
      const KeyWords<W> high = node->MoveUpper(count / 2, right.get());
      ASSERT_EQ(high, separators[static_cast<size_t>(count / 2) - 1]);
      ExpectSearches<W>(Keys<W>(separators.begin(), separators.begin() + count / 2 - 1), *node, keys);
      ExpectSearches<W>(Keys<W>(separators.begin() + count / 2, separators.end()), *right, keys);
    }
  }
}

TEST(XStoreNodeTest, SearchesFindTheChild) {
#define GANNET_CHECK_WIDTH(W) CheckNodes<W>();
  GANNET_XSTORE_WIDTHS(GANNET_CHECK_WIDTH)
#undef GANNET_CHECK_WIDTH
}

}  // namespace xstore_node_test
}  // namespace gannet::index::xstore
