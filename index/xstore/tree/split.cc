// XTree: inserts into full leaves.
#include <algorithm>
#include <optional>
#include <type_traits>

#include "base/check.h"
#include "base/sometimes.h"
#include "index/backoff.h"
#include "index/xstore/tree/tree.h"

namespace gannet::index::xstore {

// What stays in the old leaf, and what goes to the new one.
template <int W>
struct Tree<W>::SplitPlan {
  using Item = std::conditional_t<Leaf<W>::kKeysInRecords, shared_leaf::TaggedEntry, typename LeafPairs<W>::Pair>;

  Item items[LeafLayout<W>::kSlots + 1];  // all and the new one, in key order
  int left;                               // number of items that stay in the old leaf
  Words high;                             // new high fence of the old leaf
  bool left_unchanged;                    // the old leaf's items stay the same, so it need not be rewritten

  static void Store(Leaf<W> leaf, int slot, const Item& item) {
    if constexpr (Leaf<W>::kKeysInRecords) {
      leaf.set_entry(slot, item);
    } else {
      leaf.set_pair(slot, item.key, item.record);
    }
  }
};

// Ascending keys are the rule in a log of orders: a plain split would leave every leaf half full. If the new key comes
// right after the leaf's latest insert (its last slot, or TaggedLeaf::last), keys are being appended there, and the
// part before it is left full:
//   - after all keys: the old leaf stays as it is, and the new one gets only the new key;
//   - before others: these go to the new leaf, and the gap before them stays with the old one, which fills up until it
//     splits in the first way.
// Otherwise each leaf gets half.
//
// nullopt: a client has overwritten keys of records, which are in no order now (tagged_leaf.h).
template <int W>
auto Tree<W>::PlanSplit(Leaf<W> leaf, const Words& key, uint64_t record) const -> std::optional<SplitPlan> {
  constexpr int kSlots = LeafLayout<W>::kSlots;
  std::optional<SplitPlan> made(std::in_place);
  SplitPlan& plan = *made;
  int position = 0;  // of the new key
  bool ascending;
  if constexpr (Leaf<W>::kKeysInRecords) {
    position = leaf.PlaceFor(records_, key, kSlots);
    ascending = position > 0 && leaf.last() == position - 1;
    for (int i = 0; i <= kSlots; ++i) {
      plan.items[i] = i == position ? Leaf<W>::EntryOf(key, record) : leaf.entry(i < position ? i : i - 1);
    }
  } else {
    int slots[kSlots];
    Words keys[kSlots];
    for (int slot = 0; slot < kSlots; ++slot) {
      keys[slot] = leaf.key(slot);
      int at = slot;
      for (; at > 0 && keys[slot] < keys[slots[at - 1]]; --at) slots[at] = slots[at - 1];
      slots[at] = slot;
    }
    while (position < kSlots && keys[slots[position]] < key) ++position;
    ascending = position > 0 && slots[position - 1] == kSlots - 1;
    for (int i = 0; i <= kSlots; ++i) {
      if (i == position) {
        plan.items[i] = {key, record};
      } else {
        const int slot = slots[i < position ? i : i - 1];
        plan.items[i] = {keys[slot], leaf.record(slot)};
      }
    }
  }
  const auto key_of = [&](int i) {
    if constexpr (Leaf<W>::kKeysInRecords) {
      return i == position ? key : records_.template KeyOf<W>(plan.items[i]);
    } else {
      return plan.items[i].key;
    }
  };
  plan.left = ascending ? std::min(position + 1, kSlots) : (kSlots + 1) / 2;
  const Words last = key_of(plan.left - 1);
  const Words next = key_of(plan.left);
  if constexpr (Leaf<W>::kKeysInRecords) {
    if (last < leaf.low() || next <= last || leaf.high() < next) return std::nullopt;
  }
  if (ascending) {
    plan.high = position < kSlots ? next.Previous() : last;
  } else {
    plan.high = FenceBetween<W>(kind_, last, next);
  }
  plan.left_unchanged = ascending && position == kSlots;
  return made;
}

// `place.parent` and its leaf (whose unlocked state is `state`) are locked. The caller unlocks the parent; this
// function unlocks the leaf. The old leaf gives up the upper range while the new one is still locked.
template <int W>
Change Tree<W>::SplitLeaf(const Place& place, uint64_t state, std::byte* block, const SplitPlan& plan,
                          const Words& key) {
  constexpr int kSlots = LeafLayout<W>::kSlots;
  Leaf<W> left = place.leaf;
  Leaf<W> right(block);
  const LeafMeta meta = left.meta();
  const Words high = plan.high;
  GANNET_CHECK(plan.left > 0 && plan.left <= kSlots && left.low() <= high && high < left.high(),
               "a leaf keeps %d of %d keys; its new end is not within its fences", plan.left, kSlots + 1);

  for (int i = plan.left; i <= kSlots; ++i) SplitPlan::Store(right, i - plan.left, plan.items[i]);
  right.set_low(high.Next());
  right.set_high(left.high());
  right.set_meta({.right = meta.right,
                  .incarnation = right.meta().incarnation,
                  .count = static_cast<uint32_t>(kSlots + 1 - plan.left)});

  left.MarkBusy();
  if (!plan.left_unchanged) {
    for (int i = 0; i < plan.left; ++i) SplitPlan::Store(left, i, plan.items[i]);
    left.ClearSlots(plan.left, kSlots);
  }
  left.set_high(high);
  left.set_meta(
      {.right = NumberOf(right), .incarnation = meta.incarnation + 1, .count = static_cast<uint32_t>(plan.left)});
  Change change = PublishSet(left, state);
  const uint64_t right_state = NextSet(right.state());
  right.Publish(right_state);
  place.parent->InsertAfter(place.index, high, reinterpret_cast<uint64_t>(right.at()));

  const Leaf<W> target = high < key ? right : left;
  LeafHint<W>::Set(number_, key, target);
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
    const int slot = leaf.FindSlot(records_, key, meta.count);
    const bool full = slot < 0 && meta.count == LeafLayout<W>::kSlots;
    const std::optional<SplitPlan> plan = full ? PlanSplit(leaf, key, record) : std::nullopt;
    if (plan.has_value()) {
      const Words low = leaf.low();
      const Words high = leaf.high();
      Sometimes<"xstore: a leaf splits">();
      Change change = SplitLeaf(place, state, fresh->at(), *plan, key);
      place.parent->Unlock();
      Tell(low, high);
      return change;
    }
    // Another thread was faster: the key is there, or there is room now.
    if (!full) Sometimes<"xstore: another insert split the leaf first">();
    place.parent->UnlockUnchanged();
    fresh->Publish(NextSet(fresh->state()));
    leaves_->Release(fresh->at(), LeafLayout<W>::kBytes);
    if (!full && slot < 0) {
      return InsertLocked(leaf, state, meta, leaf.PlaceFor(records_, key, meta.count), key, record);
    }
    if (existing != nullptr && slot >= 0) *existing = rdma::GlobalAddress::FromBits(leaf.record(records_, slot));
    leaf.Unlock(state);
    if (full) return absl::DataLossError("keys of records were overwritten: the index finds no order in them");
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
GANNET_XSTORE_WIDTHS(GANNET_INSTANTIATE)
#undef GANNET_INSTANTIATE

}  // namespace gannet::index::xstore
