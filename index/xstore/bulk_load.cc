// XTree: loading an empty tree from sorted entries, bottom up.
#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "index/xstore/tree.h"

namespace gannet::index::xstore {

template <int W>
Status Tree<W>::BulkLoad(Context& context, std::span<const LoadEntry> entries, double fill) {
  if (!(fill > 0 && fill <= 1)) return absl::InvalidArgumentError(absl::StrCat("fill must be in (0, 1], not ", fill));
  Leaf<W> first = Locate(Words::Lowest());
  if (first.meta().right != 0 || first.meta().count != 0) {
    return absl::FailedPreconditionError("only an empty index can be loaded in bulk");
  }
  if (entries.empty()) return absl::OkStatus();
  for (size_t i = 1; i < entries.size(); ++i) {
    if (!(entries[i - 1].key < entries[i].key)) {
      return absl::InvalidArgumentError(
          absl::StrCat("entry ", i, " is not above the one before: sort them, each once"));
    }
  }
  constexpr int kSlots = LeafLayout<W>::kSlots;
  const size_t per_leaf = std::clamp<size_t>(static_cast<size_t>(std::lround(fill * kSlots)), 1, kSlots);

  std::vector<Leaf<W>> leaves = {first};
  const size_t needed = (entries.size() + per_leaf - 1) / per_leaf;
  while (leaves.size() < needed) {
    StatusOr<Leaf<W>> leaf = NewLeaf(context);
    if (!leaf.ok()) {
      for (size_t i = 1; i < leaves.size(); ++i) leaves_->Release(leaves[i].at(), LeafLayout<W>::kBytes);
      return leaf.status();
    }
    leaves.push_back(*leaf);
  }
  GANNET_CHECK(first.TryLock(first.state()), "a bulk load met a writer, %d entries", entries.size());
  first.MarkBusy();
  Words low = Words::Lowest();
  for (size_t i = 0; i < leaves.size(); ++i) {
    const size_t begin = i * per_leaf;
    const size_t end = std::min(begin + per_leaf, entries.size());
    LeafMeta meta = leaves[i].meta();
    meta.right = i + 1 < leaves.size() ? NumberOf(leaves[i + 1]) : 0;
    meta.count = static_cast<uint32_t>(end - begin);
    Words key{};
    for (size_t j = begin; j < end; ++j) {
      key = Encode<W>(entries[j].key);
      leaves[i].set_pair(static_cast<int>(j - begin), key, entries[j].record.bits());
    }
    const Words high = meta.right == 0 ? Words::Highest() : FenceBetween<W>(kind_, key, Encode<W>(entries[end].key));
    leaves[i].set_meta(meta);
    leaves[i].set_low(low);
    leaves[i].set_high(high);
    leaves[i].Publish((leaves[i].state() & ~rdma::kLockBit) + 1);
    if (meta.right != 0) low = high.Next();
  }
  BuildInnerLevels(leaves, fill);
  return absl::OkStatus();
}

// Replaces the root. Inner nodes get some room for later splits, independent of the fill of the leaves.
template <int W>
void Tree<W>::BuildInnerLevels(std::span<const Leaf<W>> leaves, double fill) {
  struct Child {
    uint64_t address;
    Words high;
  };
  std::vector<Child> children;
  for (const Leaf<W>& leaf : leaves) children.push_back({reinterpret_cast<uint64_t>(leaf.at()), leaf.high()});
  const size_t per_node = static_cast<size_t>(Node::kFanout * std::clamp(fill, 0.5, 0.9));
  Node* old_root = root();
  int level = 0;
  do {
    ++level;
    std::vector<Child> parents;
    for (size_t begin = 0; begin < children.size(); begin += per_node) {
      const size_t end = std::min(begin + per_node, children.size());
      Node* node = nodes_->Allocate(level);
      for (size_t i = begin; i < end; ++i) {
        node->Append(i > begin ? children[i - 1].high : Words::Lowest(), children[i].address);
      }
      parents.push_back({reinterpret_cast<uint64_t>(node), children[end - 1].high});
    }
    children = std::move(parents);
  } while (children.size() > 1);
  root_.store(reinterpret_cast<Node*>(children[0].address), std::memory_order_release);
  nodes_->Release(old_root);
}

#define GANNET_INSTANTIATE(W) template Status Tree<W>::BulkLoad(Context&, std::span<const LoadEntry>, double);
GANNET_XSTORE_WIDTHS(GANNET_INSTANTIATE)

}  // namespace gannet::index::xstore
