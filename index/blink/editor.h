// Editor: finds and changes nodes of a B-link tree by verbs, for a client, and for the owner over a channel of its own.
//
// A change locks one node at a time, except that a merge locks two neighbours and then their parent, and a
// transaction's inserts several nodes (separator_notices.h); a lock is only tried, so there is no deadlock. Between a
// split and the insert of its separator nothing is locked (blink.h).
//
// Nodes are not trusted (leaf.h): every loop is bounded, and a tree that cannot be walked is DataLoss. Not thread-safe;
// coroutines of the channel's worker may use it at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "base/coro/task.h"
#include "base/status.h"
#include "index/blink/descent.h"
#include "index/blink/node.h"
#include "index/blink/shared_cache.h"
#include "index/index.h"
#include "index/shared_leaf/blocks/block_source.h"
#include "index/shared_leaf/change/leaf_change.h"
#include "index/shared_leaf/change/leaf_channel.h"
#include "index/shared_leaf/leaf/byte_keys.h"
#include "index/shared_leaf/leaf/integer_keys.h"

namespace gannet::index::blink {

template <class Keys>
class Editor {
 public:
  using Key = typename Keys::Key;
  using Point = typename Keys::Point;
  using Keyed = typename Keys::Keyed;
  using Entry = typename Keys::Entry;
  using Image = typename Keys::Image;
  using Schema = typename Keys::Schema;
  using Place = shared_leaf::LeafPlaceOf<Keys>;

  // All but `cache`, which may be null, must outlive this.
  Editor(shared_leaf::LeafChannel* leaves, const Schema* schema, rdma::GlobalAddress root,
         shared_leaf::BlockSource* blocks, typename SharedInnerCache<Keys>::View* cache)
      : leaves_(leaves), schema_(schema), root_(root), blocks_(blocks), changer_(leaves, blocks), cache_(cache) {}

  // The node of `level` that covers `point`. kMend: separators that were missed or led astray are mended on the way,
  // under locks. Readers leave that to those who change the tree. A coroutine of a transaction that waits for a lock's
  // verbs shares its thread with others, which may wait, without yielding, for locks at their own node; two such
  // threads at two nodes could wait for each other.
  enum class Notice : uint8_t { kLeave, kMend };
  coro::Task<Status> Locate(Point point, uint8_t level, Notice notice, Place* place);

  // As those of LocalIndex.
  coro::Task<StatusOr<Change>> Insert(Key key, rdma::GlobalAddress record, rdma::GlobalAddress* existing);
  coro::Task<StatusOr<Change>> Remove(Key key, rdma::GlobalAddress record);
  coro::Task<Status> Replace(Key key, rdma::GlobalAddress from, rdma::GlobalAddress to) {
    return ReplaceAt(0, key, EntryOf(key, from), EntryOf(key, to));
  }
  // Replace, whatever the key is mapped to.
  coro::Task<Status> ReplaceAny(Key key, rdma::GlobalAddress to);
  // Number of entries for which a node has room, without a split.
  int RoomIn(const Place& place) const {
    const int most = place.address == root_ ? kRootSlots<Keys> : Keys::kSlots;
    return std::max(most - place.image.template count<Entry>(), 0);
  }
  // Makes a node known to the level above, `level`. Without it the tree works as before.
  coro::Task<void> InsertSeparator(uint8_t level, Keyed separator);
  bool IsRoot(const Place& place) const { return place.address == root_; }
  // Fills the empty root of a new tree: at `level`, with at most kRootSlots entries.
  coro::Task<Status> FillRoot(uint8_t level, std::span<const Keyed> entries);

 private:
  Entry EntryOf(const Key& key, rdma::GlobalAddress record) const {
    return Keys::EntryOf(Keys::RecordEntry(*schema_, key, record));
  }
  rdma::GlobalAddress TargetOf(const Entry& entry) const { return Keys::TargetOf(entry, leaves_->owner()); }
  coro::Task<Status> ReplaceAt(uint8_t level, Key key, Entry from, Entry to);
  // Takes what `descent` noticed about separators to the level above.
  coro::Task<void> Mend(uint8_t level, typename Descent<Keys>::Notes notes);
  coro::Task<StatusOr<Change>> InsertAt(uint8_t level, Keyed entry, rdma::GlobalAddress* existing);
  // The slot that has the entry's key, or leads to its child.
  coro::Task<StatusOr<int>> FindSame(uint8_t level, const Keyed& entry, Place* place);
  // These return false, as those of LeafChanger do, if the node has changed since `place` was READ.
  coro::Task<StatusOr<bool>> TryInsert(Place* place, Keyed entry, Change* change, std::optional<Keyed>* separator);
  coro::Task<StatusOr<bool>> SplitRoot(const Place& place, Keyed entry, Change* change);
  // Before a separator is added to an inner node of `level`, and after that node was READ (blink.h): ok if it leads to
  // its child. Unavailable: the child is locked; the separator can stay missing. NotFound: the child is gone.
  coro::Task<Status> LookAtChild(uint8_t level, Keyed separator);
  // Makes sure that the place has all keys, before a split. False also if it took out entries that led nowhere.
  coro::Task<StatusOr<bool>> KnowAllKeys(Place* place);

  // The following are not necessary for a correct tree: if one fails, the tree works as before. `level`: of the inner
  // node.
  coro::Task<void> RemoveSeparator(uint8_t level, Keyed separator);
  // Takes out an entry whose child is dead, or elsewhere. Byte keys.
  coro::Task<void> RemoveStale(Place* node);
  // Merges a node that has few entries with its left sibling, and then perhaps their parent with its. True if it was
  // merged: *change (if not null) has the words of the two.
  coro::Task<bool> MergeLeft(uint8_t level, const Place& node, Change* change);

  shared_leaf::LeafChannel* leaves_;
  const Schema* schema_;
  rdma::GlobalAddress root_;
  shared_leaf::BlockSource* blocks_;
  shared_leaf::BasicLeafChanger<Keys> changer_;
  typename SharedInnerCache<Keys>::View* cache_;  // null: none
};

}  // namespace gannet::index::blink
