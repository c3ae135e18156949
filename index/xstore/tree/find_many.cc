// XTree: many lookups interleaved. All descents of a group advance by one cache miss per round, so their misses
// overlap. Where leaves keep keys in records, a last round fetches the records of matching tags.
#include <algorithm>
#include <array>

#include "index/xstore/tree/tree.h"

namespace gannet::index::xstore {
namespace {

constexpr size_t kGroup = 16;

}  // namespace

template <int W>
void Tree<W>::FindMany(std::span<const Key> keys, std::span<FindResult> results) {
  GANNET_CHECK(results.size() == keys.size(), "%d results for %d keys", results.size(), keys.size());
  std::array<Words, kGroup> words;
  for (size_t begin = 0; begin < keys.size(); begin += kGroup) {
    const size_t n = std::min(kGroup, keys.size() - begin);
    for (size_t i = 0; i < n; ++i) words[i] = Encode<W>(keys[begin + i]);
    FindGroup(std::span<const Words>(words.data(), n), results.subspan(begin, n));
  }
}

// A descent that meets a writer stops, and its key is looked up alone at the end.
template <int W>
void Tree<W>::FindGroup(std::span<const Words> keys, std::span<FindResult> results) {
  struct Descent {
    const Node* node;
    uint64_t version;
    int block;
  };
  std::array<Descent, kGroup> descents;
  std::array<Leaf<W>, kGroup> leaves;
  const Node* top = root();
  const int height = top->level();
  for (size_t i = 0; i < keys.size(); ++i) descents[i].node = top;
  for (int level = height; level >= 1; --level) {
    for (size_t i = 0; i < keys.size(); ++i) {
      Descent& descent = descents[i];
      if (descent.node == nullptr) continue;
      descent.version = descent.node->version();
      descent.block = descent.node->FindBlock(keys[i]);
    }
    for (size_t i = 0; i < keys.size(); ++i) {
      Descent& descent = descents[i];
      if (descent.node == nullptr) continue;
      const int index = descent.node->SearchBlock(descent.block, keys[i]);
      const uint64_t child = descent.node->child(index);
      const bool valid =
          Node::IsStable(descent.version) && descent.node->level() == level && descent.node->Validate(descent.version);
      descent.node = valid ? reinterpret_cast<const Node*>(child) : nullptr;
      if (!valid) continue;
      if (level > 1) {
        Prefetch(descent.node);
      } else {
        leaves[i] = Leaf<W>(reinterpret_cast<std::byte*>(child));
        leaves[i].PrefetchAll();
      }
    }
  }
  if constexpr (Leaf<W>::kKeysInRecords) {
    for (size_t i = 0; i < keys.size(); ++i) {
      if (!leaves[i].is_null()) leaves[i].PrefetchMatches(records_, keys[i]);
    }
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    if (leaves[i].is_null() || !TryFind(leaves[i], keys[i], &results[i])) results[i] = Find(keys[i]);
  }
}

#define GANNET_INSTANTIATE(W) template void Tree<W>::FindMany(std::span<const Key>, std::span<FindResult>);
GANNET_XSTORE_WIDTHS(GANNET_INSTANTIATE)
#undef GANNET_INSTANTIATE

}  // namespace gannet::index::xstore
