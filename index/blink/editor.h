// Editor: finds and changes nodes of a B-link tree by verbs, for a client, and
// for the owner over a channel of its own.
//
// A change locks one node at a time, except that a merge locks two neighbours
// and then their parent, and a transaction's inserts several nodes
// (separator_notices.h); a lock is only tried, so there is no deadlock. Between
// a split and the insert of its separator nothing is locked (blink.h).
//
// Nodes are not trusted (leaf.h): every loop is bounded, and a tree that cannot
// be walked is DataLoss. Not thread-safe; coroutines of the channel's worker
// may use it at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/coro/task.h"
#include "base/status.h"
#include "index/blink/descent.h"
#include "index/blink/node.h"
#include "index/blink/path_cache.h"
#include "index/index.h"
#include "index/shared_leaf/blocks/block_source.h"
#include "index/shared_leaf/change/leaf_channel.h"
#include "index/shared_leaf/change/leaf_editor.h"

namespace gannet::index::blink {

template <class Keys>
class Editor final : public shared_leaf::LeafEditor<Keys> {
 public:
  using Base = shared_leaf::LeafEditor<Keys>;
  using typename Base::Entry;
  using typename Base::IndexEntry;
  using typename Base::Key;
  using typename Base::LeafCopy;
  using typename Base::Point;
  using typename Base::Schema;

  // All but `cache`, which may be null, must outlive this.
  Editor(shared_leaf::LeafChannel* leaves, const Schema* schema, rdma::GlobalAddress root,
         shared_leaf::BlockSource* blocks, PathCache<Keys>* cache)
      : Base(leaves, schema, blocks), root_(root), cache_(cache), current_(cache) {}
  // The owner's. `own`, too, must outlive it, and is thread-safe.
  Editor(shared_leaf::LeafChannel* leaves, const Schema* schema, rdma::GlobalAddress root,
         shared_leaf::BlockSource* blocks, CurrentNodes<Keys>* own)
      : Base(leaves, schema, blocks), root_(root), cache_(nullptr), current_(own) {}

  coro::Task<Status> Locate(Point point, LeafCopy* place) override { return Locate(point, 0, Notice::kLeave, place); }
  int RoomIn(const LeafCopy& place) const override {
    const int most = place.address == root_ ? kRootSlots<Keys> : Keys::kSlots;
    return std::max(most - place.image.template count<Entry>(), 0);
  }
  bool MaySplit(const LeafCopy& place) const override { return place.address != root_; }
  // Adds separators to the level above.
  coro::Task<void> PublishSplit(uint8_t level, std::vector<IndexEntry> rights, shared_leaf::SplitHint hint) override;
  // Fills the empty root of a new tree: at `level`, with at most kRootSlots
  // entries.
  coro::Task<Status> FillRoot(uint8_t level, std::span<const IndexEntry> entries);

 private:
  using Base::blocks_;
  using Base::changer_;
  using Base::InsertAt;
  using Base::leaves_;
  using Base::ReplaceAt;
  using Base::schema_;
  using Base::TargetOf;

  // kMend: separators that were missed or led astray are mended on the way,
  // under locks. Readers leave that to those who change the tree. A coroutine
  // of a transaction that waits for a lock's verbs shares its thread with
  // others, which may wait, without yielding, for locks at their own node; two
  // such threads at two nodes could wait for each other.
  enum class Notice : uint8_t { kLeave, kMend };
  // The node of `level` that covers `point`.
  coro::Task<Status> Locate(Point point, uint8_t level, Notice notice, LeafCopy* place);
  coro::Task<Status> LocateToChange(Point point, uint8_t level, LeafCopy* place) override {
    return Locate(point, level, Notice::kMend, place);
  }
  // Unavailable: the child is locked; the separator can stay missing. NotFound:
  // the child is gone. See blink.h.
  coro::Task<Status> LookAtChild(uint8_t level, IndexEntry separator) override;
  // False also if it took out entries that led nowhere.
  coro::Task<StatusOr<bool>> KnowAllKeys(LeafCopy* place) override;
  coro::Task<StatusOr<bool>> Split(const LeafCopy& place, IndexEntry entry, Change* change,
                                   std::optional<IndexEntry>* right, shared_leaf::SplitHint* hint) override;
  coro::Task<StatusOr<bool>> SplitRoot(const LeafCopy& place, IndexEntry entry, Change* change);

  // The following are not necessary for a correct tree: if one fails, the tree
  // works as before. `level`: of the inner node.
  //
  // Takes what `descent` noticed about separators to the level above.
  coro::Task<void> Mend(uint8_t level, typename Descent<Keys>::Notes notes);
  // Makes a node known to the level above, `level`.
  coro::Task<void> InsertSeparator(uint8_t level, IndexEntry separator);
  coro::Task<void> RemoveSeparator(uint8_t level, IndexEntry separator);
  // Takes out an entry whose child is dead, or elsewhere. Byte keys.
  coro::Task<void> RemoveStale(LeafCopy* node);
  coro::Task<bool> MergeLeft(const LeafCopy& leaf, Change* change) override { return MergeAt(0, leaf, change); }
  // Merges a node that has few entries with its left sibling, and then possibly
  // their parent with its. True if it was merged: *change (if not null) has the
  // words of the two.
  coro::Task<bool> MergeAt(uint8_t level, const LeafCopy& node, Change* change);

  rdma::GlobalAddress root_;
  PathCache<Keys>* cache_;       // null: none
  CurrentNodes<Keys>* current_;  // null: none is known
};

}  // namespace gannet::index::blink
