// LeafEditor: finds leaves by the way that an index knows, and changes them by verbs, for a client, and for the owner
// over a channel of its own. An index derives its editor from this class: it adds the way to a leaf, what has to be
// known about a new leaf, and the merges of leaves.
//
// Inner nodes that have the format of leaves are changed by the same functions: `level` is that of the node, 0 for a
// leaf, and an entry of an inner node is a separator, which leads to a child.
//
// Leaves are not trusted (leaf.h), so every loop is bounded. Not thread-safe; coroutines of the channel's worker may
// use it at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/coro/task.h"
#include "base/status.h"
#include "index/index.h"
#include "index/shared_leaf/blocks/block_source.h"
#include "index/shared_leaf/change/leaf_change.h"
#include "index/shared_leaf/change/leaf_channel.h"
#include "index/shared_leaf/leaf/byte_keys.h"
#include "index/shared_leaf/leaf/integer_keys.h"

namespace gannet::index::shared_leaf {

// A leaf with at most kSparse entries gives them to its left neighbour, if that has at most kRoomy then.
template <class Keys>
inline constexpr int kSparse = Keys::kSlots / 4;
template <class Keys>
inline constexpr int kRoomy = 2 * Keys::kSlots / 3;

// Keys: IntegerKeys or ByteKeys.
template <class Keys>
class LeafEditor : public SplitHints<Keys> {
 public:
  using Key = typename Keys::Key;
  using Point = typename Keys::Point;
  using IndexEntry = typename Keys::IndexEntry;
  using Entry = typename Keys::Entry;
  using Schema = typename Keys::Schema;
  using LeafCopy = LeafCopyOf<Keys>;

  // All must outlive this.
  LeafEditor(LeafChannel* leaves, const Schema* schema, BlockSource* blocks)
      : leaves_(leaves), schema_(schema), blocks_(blocks), changer_(leaves, blocks) {}
  virtual ~LeafEditor() = default;

  // The leaf that covers `point`, for a reader. LeafIsKept: `place` tells only where it is.
  virtual coro::Task<Status> Locate(Point point, LeafCopy* place) = 0;

  // These are the methods of LocalIndex with the same names (index.h). Replace with a null `from`: whatever the key is
  // mapped to.
  coro::Task<StatusOr<Change>> Insert(Key key, rdma::GlobalAddress record, rdma::GlobalAddress* existing);
  coro::Task<StatusOr<Change>> Remove(Key key, rdma::GlobalAddress record);
  coro::Task<Status> Replace(Key key, rdma::GlobalAddress from, rdma::GlobalAddress to);

  // Number of entries for which a node has room, without a split.
  virtual int RoomIn(const LeafCopy& place) const { return Keys::kSlots - place.image.template count<Entry>(); }
  // Whether a split of this leaf is one of leaf_split.h.
  virtual bool MaySplit(const LeafCopy& /*place*/) const { return true; }
  SplitHint HintOf(std::span<const IndexEntry> /*rights*/) override { return std::nullopt; }
  // Makes the nodes of `level` that a split has made known to others; `hint` went out with the split. Without that the
  // index works as before.
  virtual coro::Task<void> PublishSplit(uint8_t level, std::vector<IndexEntry> rights, SplitHint hint) = 0;

 protected:
  // The node of `level` that covers `point`, for a change.
  virtual coro::Task<Status> LocateToChange(Point point, uint8_t level, LeafCopy* place) = 0;
  // Called before a separator is added to an inner node of `level`, and after that node was READ: ok if it leads to its
  // child.
  virtual coro::Task<Status> LookAtChild(uint8_t /*level*/, IndexEntry /*separator*/) { co_return absl::OkStatus(); }
  // Reads all keys of a node that is to be split. False: it is to be READ again.
  virtual coro::Task<StatusOr<bool>> KnowAllKeys(LeafCopy* place);
  // Splits a full node, all of whose keys are known, and adds the entry. *right: the new node, if others have to be
  // told of it. False: as those of BasicLeafChanger.
  virtual coro::Task<StatusOr<bool>> Split(const LeafCopy& place, IndexEntry entry, Change* change,
                                           std::optional<IndexEntry>* right, SplitHint* hint);
  // Merges a leaf that has few entries with its left neighbour. True: *change has the words of both.
  virtual coro::Task<bool> MergeLeft(const LeafCopy& leaf, Change* change) = 0;

  coro::Task<StatusOr<Change>> InsertAt(uint8_t level, IndexEntry entry, rdma::GlobalAddress* existing);
  // `from` nullopt: whatever the key is mapped to.
  coro::Task<Status> ReplaceAt(uint8_t level, IndexEntry to, std::optional<Entry> from);

  Entry EntryOf(const Key& key, rdma::GlobalAddress record) const {
    return Keys::EntryOf(Keys::RecordEntry(*schema_, key, record));
  }
  rdma::GlobalAddress TargetOf(const Entry& entry) const { return Keys::TargetOf(entry, leaves_->owner()); }

  LeafChannel* leaves_;
  const Schema* schema_;
  BlockSource* blocks_;
  BasicLeafChanger<Keys> changer_;

 private:
  // The slot that has the entry's key, or leads to its child; -1: there is none. Byte keys.
  coro::Task<StatusOr<int>> FindSame(uint8_t level, const IndexEntry& entry, LeafCopy* place);
};

}  // namespace gannet::index::shared_leaf
