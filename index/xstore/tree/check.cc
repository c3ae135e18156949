// XTree: checks the whole structure.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "index/xstore/tree/tree.h"

namespace gannet::index::xstore {

template <int W>
Status Tree<W>::CheckStructure() {
  Leaf<W> last;
  uint64_t keys = 0;
  GANNET_RETURN_IF_ERROR(CheckNode(root(), Words::Lowest(), Words::Highest(), &last, &keys));
  if (last.meta().right != 0) return absl::InternalError("the last leaf has a right sibling");
  return absl::OkStatus();
}

// `node` covers [low, high]. *previous is the leaf to its left (null at first), and becomes its last leaf.
template <int W>
Status Tree<W>::CheckNode(Node* node, const Words& low, const Words& high, Leaf<W>* previous, uint64_t* keys) const {
  const int count = node->count();
  if (!Node::IsStable(node->version())) return absl::InternalError("an inner node is locked or dead");
  if (count < 1 || count > Node::kFanout)
    return absl::InternalError(absl::StrCat("an inner node has ", count, " children"));
  Words from = low;
  for (int i = 0; i < count; ++i) {
    const Words to = i + 1 < count ? node->key(i) : high;
    if (to < from) return absl::InternalError("the keys of an inner node are not in order");
    if (node->Search(from) != i || node->Search(to) != i) return absl::InternalError("an inner node's search is wrong");
    if (node->level() > 1) {
      if (node->node(i)->level() != node->level() - 1) return absl::InternalError("an inner node has a wrong level");
      GANNET_RETURN_IF_ERROR(CheckNode(node->node(i), from, to, previous, keys));
    } else {
      const Leaf<W> leaf(reinterpret_cast<std::byte*>(node->child(i)));
      GANNET_RETURN_IF_ERROR(CheckLeaf(leaf, from, to));
      if (!previous->is_null() && previous->meta().right != NumberOf(leaf)) {
        return absl::InternalError("a leaf's right link does not lead to its neighbour");
      }
      *keys += leaf.meta().count;
      *previous = leaf;
    }
    if (i + 1 < count) from = to.Next();
  }
  return absl::OkStatus();
}

template <int W>
Status Tree<W>::CheckLeaf(Leaf<W> leaf, const Words& low, const Words& high) const {
  if (!rdma::IsConsistentImage(leaf.at(), LeafLayout<W>::kLines))
    return absl::InternalError("a leaf is locked or torn");
  if (leaf.low() != low || leaf.high() != high) return absl::InternalError("a leaf's fences differ from its parent's");
  const int count = static_cast<int>(leaf.meta().count);
  constexpr int kSlots = LeafLayout<W>::kSlots;
  if (count > kSlots) return absl::InternalError(absl::StrCat("a leaf counts ", count, " keys"));
  std::vector<Words> keys;
  for (int slot = 0; slot < count; ++slot) keys.push_back(leaf.key(records_, slot));
  for (int slot = 0; slot < kSlots; ++slot) {
    if ((leaf.record(records_, slot) == 0) != (slot >= count)) {
      return absl::InternalError("a leaf has a record in a slot that it does not count, or none in one that it does");
    }
  }
  if constexpr (Leaf<W>::kKeysInRecords) {
    for (int slot = 0; slot < count; ++slot) {
      if (leaf.entry(slot).tag() != TagOf(keys[static_cast<size_t>(slot)])) {
        return absl::InternalError("an entry's tag is not that of its record's key");
      }
    }
    if (!std::is_sorted(keys.begin(), keys.end())) return absl::InternalError("the keys of a leaf are not in order");
  }
  std::sort(keys.begin(), keys.end());
  if (std::adjacent_find(keys.begin(), keys.end()) != keys.end()) return absl::InternalError("a leaf has a key twice");
  if (count > 0 && (keys.front() < low || high < keys.back())) {
    return absl::InternalError("a leaf has a key outside its fences");
  }
  return absl::OkStatus();
}

#define GANNET_INSTANTIATE(W) template Status Tree<W>::CheckStructure();
GANNET_XSTORE_WIDTHS(GANNET_INSTANTIATE)
#undef GANNET_INSTANTIATE

}  // namespace gannet::index::xstore
