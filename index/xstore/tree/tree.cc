#include "index/xstore/tree/tree.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "index/backoff.h"

namespace gannet::index::xstore {

template <int W>
Tree<W>::Tree(IndexService* service, KeyKind kind)
    : service_(service),
      kind_(kind),
      memory_(service->node().memory().data()),
      node_id_(service->node().id()),
      records_(service->node().memory(), node_id_) {
  static std::atomic<uint64_t> next_number{1};
  Runtime* const runtime = Runtime::Current();
  number_ = runtime != nullptr ? runtime->NextNumber() : next_number.fetch_add(1, std::memory_order_relaxed);
}

template <int W>
StatusOr<std::unique_ptr<Tree<W>>> Tree<W>::Create(IndexService* service, KeyKind kind) {
  if (service->node().memory().size() / kLineBytes > uint64_t{UINT32_MAX}) {
    return absl::InvalidArgumentError("an XStore index needs a node with at most 256 GiB of registered memory");
  }
  std::unique_ptr<Tree> tree(new Tree(service, kind));
  IndexService::Guard guard(service);
  StatusOr<Leaf<W>> first = tree->NewLeaf(guard.context());
  if (!first.ok()) return first.status();
  first->set_low(Words::Lowest());
  first->set_high(Words::Highest());
  first->Publish(NextSet(first->state()));
  Node* root = tree->nodes_->Allocate(1);
  root->Append(Words::Highest(), reinterpret_cast<uint64_t>(first->at()));
  tree->root_.store(root, std::memory_order_release);
  // Unlinks empty leaves also when no session changes the tree any more.
  tree->chore_ = service->epochs().AddChore([raw = tree.get()] { raw->UnlinkInQuiet(); });
  return tree;
}

template <int W>
Tree<W>::~Tree() {
  RemoveListener();
  rdma::SlabCache slab(&service_->slab());
  leaves_->Close(slab);
  if (root() == nullptr) return;
  Leaf<W> leaf = Locate(Words::Lowest());
  while (true) {
    const uint32_t right = leaf.meta().right;
    // Other users of the block know no structure.
    if ((leaf.state() & kStructureBits) != 0) leaf.Publish(NextSet(leaf.state()));
    slab.Free(leaf.at(), LeafLayout<W>::kBytes);
    if (right == 0) return;
    leaf = LeafAt(right);
  }
}

// Returns a block that is locked, busy and empty, with a new incarnation. Its fences are not set.
template <int W>
StatusOr<Leaf<W>> Tree<W>::NewLeaf(Context& context) {
  StatusOr<std::byte*> block = leaves_->Allocate(context, LeafLayout<W>::kBytes);
  if (!block.ok()) return block.status();
  Leaf<W> leaf(*block);
  // Keeps only the version: another user of this block may have left other bits in its first word.
  StoreWord(leaf.at(), VersionOf(leaf.state()) | rdma::kLockBit);
  leaf.MarkBusy();
  leaf.ClearSlots(0, LeafLayout<W>::kSlots);  // removes what an earlier use left
  leaf.set_meta({.right = 0, .incarnation = leaf.meta().incarnation + 1, .count = 0});
  return leaf;
}

template <int W>
bool Tree<W>::TryLocate(const Words& key, Leaf<W>* leaf) const {
  const Node* node = root();
  uint64_t version = node->version();
  if (!Node::IsStable(version)) return false;
  int level = node->level();
  while (true) {
    const int index = node->Search(key);
    const uint64_t child = node->child(index);
    Charge(Cost::kIndexStep);
    PreemptionPoint();
    if (!node->Validate(version)) return false;
    if (level == 1) {
      *leaf = Leaf<W>(reinterpret_cast<std::byte*>(child));
      return true;
    }
    node = reinterpret_cast<const Node*>(child);
    version = node->version();
    if (!Node::IsStable(version)) return false;
    --level;
  }
}

template <int W>
Leaf<W> Tree<W>::Locate(const Words& key) const {
  Leaf<W> leaf;
  for (Backoff backoff; !TryLocate(key, &leaf); backoff.Pause()) {
  }
  return leaf;
}

template <int W>
bool Tree<W>::TryFind(Leaf<W> leaf, const Words& key, FindResult* result) const {
  const uint64_t state = leaf.state();
  if ((state & rdma::kLockBit) != 0) [[unlikely]]
    return false;
  const LeafMeta meta = leaf.meta();
  const bool covers = leaf.Covers(key);
  const int slot = leaf.FindSlot(records_, key, meta.count);
  const uint64_t record = slot >= 0 ? leaf.record(records_, slot) : 0;
  Charge(Cost::kIndexStep);
  PreemptionPoint();
  if (leaf.state() != state || !covers) [[unlikely]]
    return false;
  LeafHint<W>::Set(number_, key, leaf);
  if (slot >= 0) {
    result->record = rdma::GlobalAddress::FromBits(record);
    result->witness = Witness{};
  } else {
    result->record = rdma::GlobalAddress();
    result->witness = Witness{AddressOf(leaf), state};
  }
  return true;
}

template <int W>
FindResult Tree<W>::Find(const Words& key, Leaf<W> leaf) {
  FindResult result;
  if (leaf.is_null()) leaf = LeafHint<W>::Get(number_, key);
  if (!leaf.is_null() && TryFind(leaf, key, &result)) return result;
  for (Backoff backoff;; backoff.Pause()) {
    if (!TryLocate(key, &leaf)) continue;
    leaf.PrefetchAll();  // and the record's line, which makes one miss instead of two
    if (TryFind(leaf, key, &result)) return result;
  }
}

template <int W>
template <class Content>
bool Tree<W>::TrySnapshot(Leaf<W> leaf, const Words& from, const Words& to, SnapshotOf<Content>* snapshot) const {
  const uint64_t state = leaf.state();
  if ((state & rdma::kLockBit) != 0) return false;
  snapshot->state = state;
  snapshot->meta = leaf.meta();
  snapshot->low = leaf.low();
  snapshot->high = leaf.high();
  snapshot->pairs.Take(records_, leaf, snapshot->meta.count, snapshot->low, snapshot->high, from, to);
  Charge(Cost::kIndexStep);
  PreemptionPoint();
  return leaf.state() == state;
}

template <int W>
template <class Content>
Leaf<W> Tree<W>::Look(const Words& key, const Words& from, const Words& to, SnapshotOf<Content>* snapshot) const {
  Leaf<W> leaf = LeafHint<W>::Get(number_, key);
  if (leaf.is_null()) leaf = Locate(key);
  for (Backoff backoff;; backoff.Pause(), leaf = Locate(key)) {
    leaf.PrefetchAll();
    if (TrySnapshot(leaf, from, to, snapshot) && snapshot->low <= key && key <= snapshot->high) break;
  }
  LeafHint<W>::Set(number_, key, leaf);
  return leaf;
}

// RemoveChore waits for a chore that is running, so after it nothing calls the listener.
template <int W>
void Tree<W>::RemoveListener() {
  if (chore_ != 0) service_->epochs().RemoveChore(std::exchange(chore_, 0));
  listener_.store(nullptr, std::memory_order_release);
}

template <int W>
void Tree<W>::SetListener(Listener listener) {
  owned_listener_ = std::make_unique<Listener>(std::move(listener));
  listener_.store(owned_listener_.get(), std::memory_order_release);
}

template <int W>
Statistics Tree<W>::statistics() {
  constexpr uint64_t kLeavesPerGuard = 1 << 12;  // a long walk must not delay the grace period
  Statistics statistics;
  Words key = Words::Lowest();
  Snapshot snapshot;
  for (bool more = true; more;) {
    const IndexService::Guard guard(service_);
    statistics.height = root()->level() + 1;
    do {
      Look(key, Words::Highest(), Words::Lowest(), &snapshot);  // no pairs
      ++statistics.nodes;
      statistics.keys += snapshot.meta.count;
      more = snapshot.high != Words::Highest();
      if (more) key = snapshot.high.Next();
    } while (more && statistics.nodes % kLeavesPerGuard != 0);
  }
  statistics.registered_bytes = leaves_->bytes();
  statistics.private_bytes = nodes_->bytes();
  return statistics;
}

#define GANNET_INSTANTIATE(W)                                                          \
  template StatusOr<std::unique_ptr<Tree<W>>> Tree<W>::Create(IndexService*, KeyKind); \
  template Tree<W>::~Tree();                                                           \
  template StatusOr<Leaf<W>> Tree<W>::NewLeaf(Context&);                               \
  template bool Tree<W>::TryLocate(const Words&, Leaf<W>*) const;                      \
  template Leaf<W> Tree<W>::Locate(const Words&) const;                                \
  template bool Tree<W>::TryFind(Leaf<W>, const Words&, FindResult*) const;            \
  template FindResult Tree<W>::Find(const Words&, Leaf<W>);                            \
  GANNET_INSTANTIATE_FOR(W, LeafPairs<W>)                                              \
  GANNET_INSTANTIATE_FOR(W, LeafRecords<W>)                                            \
  template void Tree<W>::RemoveListener();                                             \
  template void Tree<W>::SetListener(Listener);                                        \
  template Statistics Tree<W>::statistics();
#define GANNET_INSTANTIATE_FOR(W, Content)                                                             \
  template bool Tree<W>::TrySnapshot(Leaf<W>, const Words&, const Words&, SnapshotOf<Content>*) const; \
  template Leaf<W> Tree<W>::Look(const Words&, const Words&, const Words&, SnapshotOf<Content>*) const;
GANNET_XSTORE_WIDTHS(GANNET_INSTANTIATE)
#undef GANNET_INSTANTIATE
#undef GANNET_INSTANTIATE_FOR

}  // namespace gannet::index::xstore
