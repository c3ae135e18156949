// XTree: loading an empty tree from sorted entries, bottom up.
#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "index/xstore/tree/tree.h"

namespace gannet::index::xstore {

// The first leaf of the tree becomes the first of the load, and leads to the others, so it is written last, by Finish.
// The first leaves of the other parts are allocated at the beginning: then each part can link its last leaf.
template <int W>
class Tree<W>::Load final : public PartedLoad {
 public:
  Load(Tree* tree, LoadRuns entries, double fill, size_t most_parts)
      : tree_(tree),
        entries_(std::move(entries)),
        fill_(fill),
        shape_(entries_, fill, LeafLayout<W>::kSlots, most_parts) {
    leaves_.resize(shape_.leaves());
  }
  ~Load() override {
    if (finished_) return;
    for (size_t i = 1; i < leaves_.size(); ++i) {
      if (leaves_[i].address != 0) Discard(LeafNo(i));
    }
  }

  // Allocates the parts' first leaves, but that of the tree.
  Status Begin(Context& context, Leaf<W> first) {
    if (leaves_.empty()) return absl::OkStatus();
    SetLeaf(0, first);
    for (size_t part = 1; part < parts(); ++part) GANNET_RETURN_IF_ERROR(Allocate(context, shape_.FirstLeaf(part)));
    return absl::OkStatus();
  }

  size_t parts() const override { return shape_.parts(); }

  Status Build(Context& context, size_t part) override {
    const size_t first = shape_.FirstLeaf(part);
    const size_t end = shape_.EndLeaf(part);
    GANNET_RETURN_IF_ERROR(shape_.CheckOrder(entries_, part));
    for (size_t i = first + 1; i < end; ++i) GANNET_RETURN_IF_ERROR(Allocate(context, i));
    LoadRuns::Reader entries(entries_);
    for (size_t i = std::max<size_t>(first, 1); i < end; ++i) Fill(i, &entries);
    return absl::OkStatus();
  }

  Status Finish(Context& context) override {
    finished_ = true;
    if (leaves_.empty()) return absl::OkStatus();
    std::unique_lock no_unlinking(tree_->unlink_mutex_);
    Leaf<W> first = LeafNo(0);
    const uint64_t state = first.state();
    GANNET_CHECK((state & rdma::kLockBit) == 0 && first.TryLock(state), "a bulk load met a writer, %d entries",
                 entries_.size());
    first.MarkBusy();
    LoadRuns::Reader entries(entries_);
    Fill(0, &entries);
    tree_->BuildInnerLevels(context, std::move(leaves_), fill_);
    no_unlinking.unlock();
    tree_->Tell(Words::Lowest(), Words::Highest());
    return absl::OkStatus();
  }

 private:
  Leaf<W> LeafNo(size_t i) const { return Leaf<W>(reinterpret_cast<std::byte*>(leaves_[i].address)); }
  void SetLeaf(size_t i, Leaf<W> leaf) { leaves_[i].address = reinterpret_cast<uint64_t>(leaf.at()); }

  Status Allocate(Context& context, size_t i) {
    const StatusOr<Leaf<W>> leaf = tree_->NewLeaf(context);
    if (!leaf.ok()) return leaf.status();
    SetLeaf(i, *leaf);
    return absl::OkStatus();
  }

  Words HighBefore(size_t next, LoadRuns::Reader* entries) const {
    const Words last = Encode<W>((*entries)[next - 1].key);
    return FenceBetween<W>(tree_->kind_, last, Encode<W>((*entries)[next].key));
  }

  // Writes a leaf, which is locked and busy, and publishes it.
  void Fill(size_t i, LoadRuns::Reader* entries) {
    Leaf<W> leaf = LeafNo(i);
    const size_t begin = shape_.Begin(i);
    const size_t end = shape_.End(i);
    LeafMeta meta = leaf.meta();
    meta.right = i + 1 < leaves_.size() ? tree_->NumberOf(LeafNo(i + 1)) : 0;
    meta.count = static_cast<uint32_t>(end - begin);
    const Words low = begin == 0 ? Words::Lowest() : HighBefore(begin, entries).Next();
    for (size_t j = begin; j < end; ++j) {
      const LoadEntry& entry = (*entries)[j];
      leaf.set_pair(static_cast<int>(j - begin), Encode<W>(entry.key), entry.record.bits());
    }
    leaves_[i].high = meta.right == 0 ? Words::Highest() : HighBefore(end, entries);
    leaf.set_meta(meta);
    leaf.set_low(low);
    leaf.set_high(leaves_[i].high);
    leaf.Publish(NextSet(leaf.state()));
  }

  // Gives back a leaf that the tree never led to. A client may still know the block from an earlier use, so one that
  // was published becomes a dead leaf first.
  void Discard(Leaf<W> leaf) {
    const uint64_t state = leaf.state();
    if ((state & rdma::kLockBit) == 0) {
      GANNET_CHECK(leaf.TryLock(state), "a leaf of a load that failed has a writer, state %d", state);
      leaf.MarkBusy();
      leaf.ClearSlots(0, LeafLayout<W>::kSlots);
      leaf.set_meta({.right = 0, .incarnation = leaf.meta().incarnation + 1, .count = 0});
      leaf.set_low(Words::Highest());
      leaf.set_high(Words::Lowest());
      leaf.Publish(NextSet(state));
    }
    tree_->leaves_->Release(leaf.at(), LeafLayout<W>::kBytes);
  }

  Tree* tree_;
  const LoadRuns entries_;
  const double fill_;
  const LoadShape shape_;
  std::vector<LoadedNode> leaves_;  // those of a part are written by its thread only
  bool finished_ = false;
};

template <int W>
StatusOr<std::unique_ptr<PartedLoad>> Tree<W>::BeginLoad(Context& context, LoadRuns entries, double fill,
                                                         size_t most_parts) {
  GANNET_RETURN_IF_ERROR(CheckFill(fill));
  Leaf<W> first;
  LeafMeta meta;
  {
    // The last leaf that goes may still be on its way out of the inner nodes. The one that is left stays.
    const std::lock_guard no_unlinking(unlink_mutex_);
    first = Locate(Words::Lowest());
    meta = first.meta();
  }
  if (meta.right != 0 || meta.count != 0) {
    return absl::FailedPreconditionError("only an empty index can be loaded in bulk");
  }
  auto load = std::make_unique<Load>(this, std::move(entries), fill, most_parts);
  GANNET_RETURN_IF_ERROR(load->Begin(context, first));
  return load;
}

template <int W>
Status Tree<W>::BulkLoad(Context& context, std::span<const LoadEntry> entries, double fill) {
  const StatusOr<std::unique_ptr<PartedLoad>> load = BeginLoad(context, LoadRuns(entries), fill, 1);
  return load.ok() ? (*load)->Run(context) : load.status();
}

// Replaces the root. Inner nodes get some room for later splits, independent of the fill of the leaves. The old nodes
// have one child each, and a thread that trains a model may be looking at them. Requires unlink_mutex_.
template <int W>
void Tree<W>::BuildInnerLevels(Context& context, std::vector<LoadedNode> leaves, double fill) {
  std::vector<LoadedNode> children = std::move(leaves);
  const size_t per_node = static_cast<size_t>(Node::kFanout * std::clamp(fill, 0.5, 0.9));
  Node* old = root();
  int level = 0;
  do {
    ++level;
    std::vector<LoadedNode> parents;
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
  for (; old->level() > 1; old = old->node(0)) nodes_->Retire(context, old);
  nodes_->Retire(context, old);
}

#define GANNET_INSTANTIATE(W)                                                      \
  template Status Tree<W>::BulkLoad(Context&, std::span<const LoadEntry>, double); \
  template StatusOr<std::unique_ptr<PartedLoad>> Tree<W>::BeginLoad(Context&, LoadRuns, double, size_t);
GANNET_XSTORE_WIDTHS(GANNET_INSTANTIATE)
#undef GANNET_INSTANTIATE

}  // namespace gannet::index::xstore
