// XTree: inserts into full leaves.
#include <algorithm>

#include "base/sometimes.h"
#include "index/backoff.h"
#include "index/xstore/tree.h"

namespace gannet::index::xstore {
namespace {

template <int W>
struct SplitPlan {
  typename LeafPairs<W>::Pair pairs[kLeafSlots + 1];  // all pairs and the new one, in key order
  int left;                                           // number of pairs that stay in the old leaf
  KeyWords<W> high;                                   // new high fence of the old leaf
  bool left_unchanged;                                // the old leaf's pairs stay the same, so it need not be rewritten
};

// Ascending keys are the rule in a log of orders: a plain split would leave every leaf half full. A leaf's last slot is
// its latest insert; if the new key comes right after that one, keys are being appended there, and the part before it
// is left full:
//   - after all keys: the old leaf stays as it is, and the new one gets only the new key;
//   - before others: these go to the new leaf, and the gap before them stays with the old one, which fills up until it
//     splits in the first way.
// Otherwise each leaf gets half.
template <int W>
SplitPlan<W> PlanSplit(Leaf<W> leaf, KeyKind kind, const KeyWords<W>& key, uint64_t record) {
  SplitPlan<W> plan;
  int slots[kLeafSlots];
  KeyWords<W> keys[kLeafSlots];
  for (int slot = 0; slot < kLeafSlots; ++slot) {
    keys[slot] = leaf.key(slot);
    int at = slot;
    for (; at > 0 && keys[slot] < keys[slots[at - 1]]; --at) slots[at] = slots[at - 1];
    slots[at] = slot;
  }
  int position = 0;
  while (position < kLeafSlots && keys[slots[position]] < key) ++position;
  for (int i = 0; i <= kLeafSlots; ++i) {
    if (i == position) {
      plan.pairs[i] = {key, record};
    } else {
      const int slot = slots[i < position ? i : i - 1];
      plan.pairs[i] = {keys[slot], leaf.record(slot)};
    }
  }
  const bool ascending = position > 0 && slots[position - 1] == kLeafSlots - 1;
  plan.left = ascending ? std::min(position + 1, kLeafSlots) : (kLeafSlots + 1) / 2;
  const KeyWords<W>& last = plan.pairs[plan.left - 1].key;
  const KeyWords<W>& next = plan.pairs[plan.left].key;
  if (ascending) {
    plan.high = position < kLeafSlots ? next.Previous() : last;
  } else {
    plan.high = FenceBetween<W>(kind, last, next);
  }
  plan.left_unchanged = ascending && position == kLeafSlots;
  return plan;
}

}  // namespace

// `place.parent` and its leaf (whose unlocked state is `state`) are locked. The caller unlocks the parent; this
// function unlocks the leaf. The old leaf gives up the upper range while the new one is still locked.
template <int W>
Change Tree<W>::SplitLeaf(const Place& place, uint64_t state, std::byte* block, const Words& key, uint64_t record) {
  Leaf<W> left = place.leaf;
  Leaf<W> right(block);
  const LeafMeta meta = left.meta();
  const SplitPlan<W> plan = PlanSplit<W>(left, kind_, key, record);
  const Words high = plan.high;

  for (int i = plan.left; i <= kLeafSlots; ++i) right.set_pair(i - plan.left, plan.pairs[i].key, plan.pairs[i].record);
  right.set_low(high.Next());
  right.set_high(left.high());
  right.set_meta({.right = meta.right,
                  .incarnation = right.meta().incarnation,
                  .count = static_cast<uint32_t>(kLeafSlots + 1 - plan.left)});

  left.MarkBusy();
  if (!plan.left_unchanged) {
    for (int i = 0; i < plan.left; ++i) left.set_pair(i, plan.pairs[i].key, plan.pairs[i].record);
    left.ClearSlots(plan.left, kLeafSlots);
  }
  left.set_high(high);
  left.set_meta(
      {.right = NumberOf(right), .incarnation = meta.incarnation + 1, .count = static_cast<uint32_t>(plan.left)});
  left.Publish(state + 1);
  const uint64_t right_state = (right.state() & ~rdma::kLockBit) + 1;
  right.Publish(right_state);
  place.parent->InsertAfter(place.index, high, reinterpret_cast<uint64_t>(right.at()));

  const Leaf<W> target = high < key ? right : left;
  LeafHint<W>::Set(number_, key, target, target.low(), target.high());
  Change change(AddressOf(left), state, state + 1);
  change.AddCreated({AddressOf(right), right_state});
  return change;
}

template <int W>
StatusOr<Change> Tree<W>::SplitAndInsert(Context& context, const Words& key, uint64_t record,
                                         rdma::GlobalAddress* existing) {
  UnlinkEmptyLeaves(context);
  StatusOr<Leaf<W>> fresh = NewLeaf(context);
  if (!fresh.ok()) return fresh.status();
  for (Backoff backoff;; backoff.Pause()) {
    Place place;
    if (!DescendSplitting(key, &place) || !place.parent->TryLock(place.version)) continue;
    Leaf<W> leaf = place.leaf;
    uint64_t state = leaf.state();
    for (Backoff wait; (state & rdma::kLockBit) != 0 || !leaf.TryLock(state); state = leaf.state()) wait.Pause();
    const LeafMeta meta = leaf.meta();
    GANNET_CHECK(leaf.Covers(key), "a leaf's fences contradict its parent's, incarnation %d", meta.incarnation);
    const int slot = leaf.FindSlot(key, meta.count);
    if (slot < 0 && meta.count == kLeafSlots) {
      const Words low = leaf.low();
      const Words high = leaf.high();
      Sometimes<"xstore: a leaf splits">();
      Change change = SplitLeaf(place, state, fresh->at(), key, record);
      place.parent->Unlock();
      if (const Listener* listener = listener_.load(std::memory_order_acquire)) (*listener)(low, high);
      return change;
    }
    // Another thread was faster: the key is there, or there is room now.
    Sometimes<"xstore: another insert split the leaf first">();
    place.parent->UnlockUnchanged();
    fresh->Publish((fresh->state() & ~rdma::kLockBit) + 1);
    leaves_->Release(fresh->at(), LeafLayout<W>::kBytes);
    if (slot < 0) return InsertLocked(leaf, state, meta, key, record);
    if (existing != nullptr) *existing = rdma::GlobalAddress::FromBits(leaf.record(slot));
    leaf.Unlock(state);
    return absl::AlreadyExistsError("the key is in the index");
  }
}

// Descends to the leaf for `key`, and splits every full node on the way, so that the parent has room. False: try again.
template <int W>
bool Tree<W>::DescendSplitting(const Words& key, Place* place) {
  Node* parent = nullptr;
  uint64_t parent_version = 0;
  int parent_index = 0;
  Node* node = root();
  uint64_t version = node->version();
  if (!Node::IsStable(version)) return false;
  while (true) {
    if (node->count() == Node::kFanout) {
      if (!node->Validate(version)) return false;
      SplitNode(parent, parent_version, parent_index, node, version, key);
      return false;
    }
    const int index = node->Search(key);
    const uint64_t child = node->child(index);
    const int level = node->level();
    if (!node->Validate(version)) return false;
    if (level == 1) {
      *place = {node, version, index, Leaf<W>(reinterpret_cast<std::byte*>(child))};
      return true;
    }
    parent = node;
    parent_version = version;
    parent_index = index;
    node = reinterpret_cast<Node*>(child);
    version = node->version();
    if (!Node::IsStable(version) || !parent->Validate(parent_version)) return false;
  }
}

// Returns false if a lock was not free. If keys are appended to the last child, only that child goes to the new node.
template <int W>
bool Tree<W>::SplitNode(Node* parent, uint64_t parent_version, int index_in_parent, Node* node, uint64_t version,
                        const Words& key) {
  if (parent != nullptr && !parent->TryLock(parent_version)) return false;
  const bool locked = node->TryLock(version);
  if (!locked || (parent == nullptr && root() != node)) {
    if (locked) node->UnlockUnchanged();
    if (parent != nullptr) parent->UnlockUnchanged();
    return false;
  }
  const int last = Node::kFanout - 1;
  const int from = node->Search(key) == last ? last : Node::kFanout / 2;
  if (parent == nullptr) {
    Sometimes<"xstore: the root splits">();
  } else {
    Sometimes<"xstore: an inner node splits">();
  }
  Node* right = nodes_->Allocate(node->level());
  const Words high = node->MoveUpper(from, right);
  if (parent != nullptr) {
    parent->InsertAfter(index_in_parent, high, reinterpret_cast<uint64_t>(right));
    parent->Unlock();
  } else {
    Node* root = nodes_->Allocate(node->level() + 1);
    root->Append(Words::Highest(), reinterpret_cast<uint64_t>(node));
    root->Append(high, reinterpret_cast<uint64_t>(right));
    root_.store(root, std::memory_order_release);
  }
  node->Unlock();
  return true;
}

#define GANNET_INSTANTIATE(W) \
  template StatusOr<Change> Tree<W>::SplitAndInsert(Context&, const Words&, uint64_t, rdma::GlobalAddress*);
GANNET_INSTANTIATE(1)
GANNET_INSTANTIATE(3)
GANNET_INSTANTIATE(5)
GANNET_INSTANTIATE(9)

}  // namespace gannet::index::xstore
