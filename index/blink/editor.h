// Editor: finds and changes nodes of a B-link tree by verbs, for a client, and for the owner over a channel of its own.
//
// A change locks one node at a time, except that a merge locks two neighbours; a lock is only tried, so there is no
// deadlock. Between a change of a level and that of the level above nothing is locked (blink.h).
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
#include "index/blink/inner_cache.h"
#include "index/blink/node.h"
#include "index/index.h"
#include "index/remote/block_source.h"
#include "index/remote/leaf_change.h"
#include "index/remote/leaf_channel.h"

namespace gannet::index::blink {

class Editor {
 public:
  // All but `cache`, which may be null, must outlive this.
  Editor(remote::LeafChannel* leaves, rdma::GlobalAddress root, remote::BlockSource* blocks, InnerCache* cache)
      : leaves_(leaves), root_(root), blocks_(blocks), changer_(leaves, blocks), cache_(cache) {}

  // The node of `level` that covers `key`. kMend: separators that were missed or led astray are mended on the way,
  // under locks. Readers leave that to those who change the tree. A coroutine of a transaction that waits for a lock's
  // verbs shares its thread with others, which may wait, without yielding, for locks at their own node; two such
  // threads at two nodes could wait for each other.
  enum class Notice : uint8_t { kLeave, kMend };
  coro::Task<Status> Locate(uint64_t key, uint8_t level, Notice notice, Place* place);

  // As those of LocalIndex.
  coro::Task<StatusOr<Change>> Insert(uint64_t key, rdma::GlobalAddress record, rdma::GlobalAddress* existing);
  coro::Task<StatusOr<Change>> Remove(uint64_t key, rdma::GlobalAddress record);
  coro::Task<Status> Replace(uint64_t key, rdma::GlobalAddress from, rdma::GlobalAddress to) {
    return ReplaceAt(0, key, from, to);
  }
  // Number of entries for which a node has room, without a split.
  int RoomIn(const Place& place) const {
    const int most = place.address == root_ ? kRootSlots : kSlots;
    return std::max(most - place.image.count<IntegerEntry>(), 0);
  }
  // Fills the empty root of a new tree: at `level`, with at most kRootSlots entries.
  coro::Task<Status> FillRoot(uint8_t level, std::span<const IntegerEntry> entries);

 private:
  coro::Task<Status> ReplaceAt(uint8_t level, uint64_t key, rdma::GlobalAddress from, rdma::GlobalAddress to);
  // Takes what `descent` noticed about separators to the level above.
  coro::Task<void> Mend(uint8_t level, Descent::Notes notes);
  coro::Task<StatusOr<Change>> InsertAt(uint8_t level, IntegerEntry entry, rdma::GlobalAddress* existing);
  // These return false, as those of LeafChanger do, if the node has changed since `place` was READ.
  coro::Task<StatusOr<bool>> TryInsert(const Place& place, IntegerEntry entry, Change* change,
                                       std::optional<IntegerEntry>* separator);
  coro::Task<StatusOr<bool>> SplitRoot(const Place& place, IntegerEntry entry, Change* change);

  // The following are not necessary for a correct tree: if one fails, the tree works as before. `level`: of the inner
  // node.
  coro::Task<void> InsertSeparator(uint8_t level, IntegerEntry separator);
  coro::Task<void> RemoveSeparator(uint8_t level, IntegerEntry separator);
  // Merges a node that has few entries with its left sibling, and then perhaps their parent with its. True if it was
  // merged: *change (if not null) has the words of the two.
  coro::Task<bool> MergeLeft(uint8_t level, const Place& node, Change* change);

  remote::LeafChannel* leaves_;
  rdma::GlobalAddress root_;
  remote::BlockSource* blocks_;
  remote::LeafChanger changer_;
  InnerCache* cache_;
};

}  // namespace gannet::index::blink
