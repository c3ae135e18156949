// XTree: unlinks empty leaves.
//
// Otherwise a queue (inserts at one end, removals at the other) would leave more and more empty leaves at its low end,
// which every scan has to cross. A leaf that became empty waits for a grace period, because it may be filled again
// soon. Then the next change of the tree, or the thread that advances the epochs, unlinks it together with all inner
// nodes above it that have no other child:
//
//            [A]                     A: the lowest ancestor with another child
//           / | \                    the path from A down to L has one child each, and goes with L
//         ..  |  ..
//        [ ] [ ] [ ]
//         |   |   |
//     ... P - L - R ...              P absorbs [L.low, L.high] if A has a child left of the path, else R does
//
// Locks, all but the first only tried: A, the path, L, P, R. If one is not free, the attempt ends: L stays queued.
//
// Why witnesses stay sound, and no transaction notices. The unlinking changes no set of keys, so the words of L, P and
// R change in their structure only (witness_word.h), and while they are locked for it, a witness is valid, too. Let k
// be in L's range, and T a transaction that missed k, or scanned over it.
//
//   - T has seen P before: its witness of P covers the same keys as before, and more from now on. That may cost a
//     conflict with an insert of one of these, but hides nothing. (So for R.)
//   - T has seen L before, and holds its word. No insert of k can happen before the unlinking without a new version of
//     L. Afterwards k is covered by the absorber, and L is its shadow: the first change of the absorber's set gives L a
//     new version, too (shadows.h), and T fails its validation, or has made the change itself and holds the absorber's
//     word now. L keeps its memory, and remains a shadow, until all that may have seen L alive are over.
//   - T comes later. The dead leaf covers nothing, so T finds k, or its absence, in the absorber.
//     While L is still locked and the absorber is already published, only the absorber can be used for k.
//
// The absorber's state says that it has shadows from the moment at which its fences can be read unlocked, so every
// insert of k finds that in the state that it locks.
#include <algorithm>
#include <array>

#include "base/sometimes.h"
#include "index/xstore/tree/leaf_locks.h"
#include "index/xstore/tree/tree.h"

namespace gannet::index::xstore {
namespace {

constexpr int kMaxUnlinks = 16;     // per call
constexpr int kCallsPerRound = 64;  // by the thread that advances the epochs

}  // namespace

// The nodes from the root (step 0) to the parent of the leaf.
template <int W>
struct Tree<W>::Path {
  struct Step {
    Node* node;
    uint64_t version;
    int index;
    int count;
  };
  std::array<Step, kMaxHeight> steps;
  int size = 0;
  int ancestor = 0;  // the lowest step with more than one child
  Leaf<W> leaf;
};

template <int W>
void Tree<W>::NoteEmpty(Context& context, const Words& low) {
  context.epoch->RetireWith([empties = empties_, low] { empties->Add(low); });
}

template <int W>
bool Tree<W>::UnlinkEmptyLeaves(Context& context) {
  if (!empties_->any()) return false;
  std::unique_lock lock(unlink_mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  Words low;
  bool any = false;
  for (int tries = 0; tries < kMaxUnlinks && empties_->Take(&low); ++tries) {
    if (UnlinkOne(context, low)) {
      any = true;
    } else {
      empties_->Add(low);
    }
  }
  return any;
}

// Unlinks empty leaves of a tree that no session changes any more.
template <int W>
void Tree<W>::UnlinkInQuiet() {
  if (!empties_->any()) return;
  IndexService::Guard guard(service_);
  for (int calls = 0; calls < kCallsPerRound && UnlinkEmptyLeaves(guard.context()); ++calls) {
  }
}

// Unlinks the leaf that now covers `low`, if it is empty: the leaf that was noted may have absorbed others or been
// absorbed since. Returns false if another thread holds a lock: try again later. Requires unlink_mutex_.
template <int W>
bool Tree<W>::UnlinkOne(Context& context, const Words& low) {
  Path path;
  if (!DescendPath(low, &path)) return false;
  Snapshot snapshot;
  if (!TrySnapshot(path.leaf, Words::Highest(), Words::Lowest(), &snapshot)) return false;
  if (snapshot.meta.count > 0) return true;              // in use again, or unlinked already
  if (path.steps[path.ancestor].count < 2) return true;  // the only leaf of the tree stays
  Leaf<W> predecessor;
  if (snapshot.low != Words::Lowest() && !TryLocate(snapshot.low.Previous(), &predecessor)) return false;
  return Bypass(context, path, predecessor);
}

template <int W>
bool Tree<W>::DescendPath(const Words& key, Path* path) const {
  Node* node = root();
  while (path->size < kMaxHeight) {
    const uint64_t version = node->version();
    const int index = node->Search(key);
    const int count = node->count();
    const int level = node->level();
    const uint64_t child = node->child(index);
    if (!Node::IsStable(version) || !node->Validate(version)) return false;
    if (count > 1) path->ancestor = path->size;
    path->steps[path->size++] = {node, version, index, count};
    if (level == 1) {
      path->leaf = Leaf<W>(reinterpret_cast<std::byte*>(child));
      return true;
    }
    node = reinterpret_cast<Node*>(child);
  }
  return false;
}

// Locks the ancestor and all nodes below it, or none.
template <int W>
bool Tree<W>::LockPath(const Path& path) {
  for (int i = path.ancestor; i < path.size; ++i) {
    if (path.steps[i].node->TryLock(path.steps[i].version)) continue;
    while (--i >= path.ancestor) path.steps[i].node->UnlockUnchanged();
    return false;
  }
  return true;
}

// `predecessor` is the leaf to the left of the path's leaf, or null.
template <int W>
bool Tree<W>::Bypass(Context& context, const Path& path, Leaf<W> predecessor) {
  if (!LockPath(path)) return false;
  Leaf<W> dead = path.leaf;
  const int index = path.steps[path.ancestor].index;
  const Words low = dead.low();
  const Words high = dead.high();
  if (!RelinkLeaves(dead, predecessor, index == 0)) {
    for (int i = path.ancestor; i < path.size; ++i) path.steps[i].node->UnlockUnchanged();
    return false;
  }
  RetireLeaf(context, dead);

  Node* ancestor = path.steps[path.ancestor].node;
  ancestor->Remove(index);
  for (int i = path.ancestor + 1; i < path.size; ++i) {
    path.steps[i].node->UnlockDead();
    nodes_->Retire(context, path.steps[i].node);
  }
  ancestor->Unlock();
  CollapseRoot(context);
  Tell(low, high);
  return true;
}

// First of all the leaf becomes free of its absorber; then another one may have its block, whose state has no
// structure.
template <int W>
void Tree<W>::RetireLeaf(Context& context, Leaf<W> dead) {
  context.epoch->RetireWith([shadows = shadows_, leaves = leaves_, dead]() mutable {
    shadows->Forget(dead);
    dead.Publish(NextSet(dead.state()));
    leaves->Release(dead.at(), LeafLayout<W>::kBytes);
  });
}

// Takes `dead` out of the chain of leaves. Returns false, without a change, if a lock was not free, the leaves have
// changed, or the absorber has enough shadows.
template <int W>
bool Tree<W>::RelinkLeaves(Leaf<W> dead, Leaf<W> predecessor, bool right_absorbs) {
  LeafLocks<W> locks;
  if (!locks.TryLock(dead) || dead.meta().count > 0) {
    SometimesInTests<"xstore: an empty leaf is locked or filled again">();
    return false;
  }
  LeafMeta meta = dead.meta();
  if (!predecessor.is_null() && (!locks.TryLock(predecessor) || predecessor.high() != dead.low().Previous() ||
                                 predecessor.meta().right != NumberOf(dead))) {
    return false;
  }
  Leaf<W> right = LeafAt(meta.right);  // exists if it absorbs
  if (right_absorbs && !locks.TryLock(right)) return false;
  const Leaf<W> absorber = right_absorbs ? right : predecessor;
  if (!shadows_->HasRoom(absorber, dead)) return false;

  if (!predecessor.is_null()) {
    predecessor.MarkBusy();
    LeafMeta changed = predecessor.meta();
    changed.right = meta.right;
    predecessor.set_meta(changed);
    if (!right_absorbs) predecessor.set_high(dead.high());
  }
  if (right_absorbs) {
    right.MarkBusy();
    right.set_low(dead.low());
  }
  dead.MarkBusy();
  dead.set_low(Words::Highest());
  dead.set_high(Words::Lowest());
  dead.set_meta({.right = 0, .incarnation = meta.incarnation + 1, .count = 0});
  if (right_absorbs) {
    Sometimes<"xstore: an empty leaf's range goes to the right">();
  } else {
    Sometimes<"xstore: an empty leaf's range goes to the left">();
  }
  shadows_->Add(absorber, dead);
  locks.PublishAll(absorber);  // the absorber before the dead leaf
  return true;
}

// Replaces a root that has one child by that child, so that the height falls with the number of leaves.
template <int W>
void Tree<W>::CollapseRoot(Context& context) {
  while (true) {
    Node* node = root();
    if (node->level() == 1 || node->count() > 1 || !node->TryLock()) return;
    if (node->level() == 1 || node->count() > 1 || root() != node) {
      node->UnlockUnchanged();
      return;
    }
    Sometimes<"xstore: the root gives way to its only child">();
    root_.store(node->node(0), std::memory_order_release);
    node->UnlockDead();
    nodes_->Retire(context, node);
  }
}

#define GANNET_INSTANTIATE(W)                               \
  template void Tree<W>::NoteEmpty(Context&, const Words&); \
  template bool Tree<W>::UnlinkEmptyLeaves(Context&);       \
  template void Tree<W>::UnlinkInQuiet();
GANNET_XSTORE_WIDTHS(GANNET_INSTANTIATE)
#undef GANNET_INSTANTIATE

}  // namespace gannet::index::xstore
