// Repair of leaves of Dolphin by the owner's CPU, after the death of a client, when none of its verbs takes effect any
// more (fabric.h, 5). No log and no intent is needed: a change that was not acknowledged is made or not.
//
//   1. Which leaves the index reaches is noted once, before anything is repaired.
//   2. The bit of the dead node is taken out of every leaf, and no other bit.
//   3. Blocks that it had locked and that the index does not reach become dead, before step 4 opens their neighbours:
//      somebody may read them by a stale address.
//   4. Leaves that it had locked, when those who live have left: entries within the fences stay, all lines get a new
//      number. With byte keys, the keys are loaded from the records. Which entries stay is decided for all of these
//      leaves before one of them is opened. For an entry that a half-done split has left outside the fences is in the
//      right leaf, too; when that is open, somebody may remove it there, and another key may get its record.
//   5. Leaves that had its bit: under the exclusive side, reserved slots become removed entries, and the state word is
//      raised, because the node may have inserted a key and not done that. If another dead node holds the exclusive
//      side, its repair does this.
//
// After that the blocks are swept (LeafBlocks::Sweep) by the note of step 1. If a live node stays inside a leaf for
// longer than the patience, the leaf is left for another call: reserved slots, and its lock, stay. With byte keys, all
// locks of step 4 stay then.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/coro/worker.h"
#include "base/status.h"
#include "index/dolphin/keys.h"
#include "index/dolphin/leaf.h"
#include "index/shared_leaf/blocks/leaf_blocks.h"
#include "rdma/fabric.h"

namespace gannet::index::dolphin {

// Keys: IntegerKeys or ByteKeys (keys.h).
template <class Keys>
class LeafRepair {
 public:
  using Leaf = typename Keys::Leaf;
  using Schema = typename Keys::Schema;

  // All must outlive this. `channel`: of the owner, which polls it with `worker`. If the atomics of NICs are not
  // coherent with the CPU's, both lock words are changed by this channel: an FAA of 0 by a client would undo a store.
  LeafRepair(const rdma::Fabric* fabric, rdma::Channel* channel, coro::Worker* worker, shared_leaf::LeafBlocks* blocks,
             const Schema* schema, uint64_t patience_nanos)
      : fabric_(fabric),
        channel_(channel),
        worker_(worker),
        blocks_(blocks),
        schema_(schema),
        patience_nanos_(patience_nanos) {}

  // Calls its argument with every leaf that the index reaches. An error: it cannot be walked, and no block is given up.
  using ForEachLinked = std::function<Status(const std::function<void(rdma::GlobalAddress)>&)>;
  // Unavailable: leaves were left. Used by one thread at a time.
  Status RepairAfter(rdma::NodeId client, const ForEachLinked& for_each_linked);
  // For ForEachLinked. If `client`, or another node that is dead, has the exclusive side of the leaf: *image has its
  // range and its right link. Its entries may be from the middle of a change.
  bool Peek(rdma::NodeId client, rdma::GlobalAddress leaf, typename Keys::Image* image) const;

 private:
  std::byte* At(rdma::GlobalAddress leaf) const { return channel_->Local(leaf); }
  // Carries out an atomic on a lock word of this node, and returns what it has found.
  StatusOr<uint64_t> Atomic(rdma::Operation operation) const;
  // Stores a state word that nobody else changes.
  Status StoreState(rdma::GlobalAddress leaf, uint64_t state) const;
  bool IsLockedBy(rdma::NodeId node, uint64_t state) const;
  // Waits until no live node is inside. False: the patience is over.
  bool Drain(rdma::GlobalAddress leaf) const;
  // Greater than all versions and numbers of a leaf.
  uint64_t NextVersion(rdma::GlobalAddress leaf) const;
  // All that a leaf has, word by word.
  Leaf Load(rdma::GlobalAddress leaf) const;
  // What is to stay of a leaf that the dead node had locked, which is drained; with a new number.
  Leaf WhatStays(rdma::GlobalAddress leaf) const;
  // Stores that, and opens the leaf.
  Status MakeWhole(rdma::GlobalAddress leaf, const Leaf& content) const;
  // False: it is in use.
  StatusOr<bool> MendReserved(rdma::GlobalAddress leaf) const;

  const rdma::Fabric* fabric_;
  rdma::Channel* channel_;
  coro::Worker* worker_;
  shared_leaf::LeafBlocks* blocks_;
  const Schema* schema_;
  uint64_t patience_nanos_;
};

}  // namespace gannet::index::dolphin
