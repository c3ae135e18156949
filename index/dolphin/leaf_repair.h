// Repair of leaves of Dolphin by the owner's CPU, after the death of a client, when none of its verbs takes effect any
// more (fabric.h, 5). No log and no intent is needed: a change that was not acknowledged is made or not.
//
//   1. Which leaves the index reaches is noted once, before anything is repaired.
//   2. The bit of the dead node is taken out of every leaf, and no other bit.
//   3. Blocks that it had locked and that the index does not reach become dead, before step 4 opens their neighbours:
//      somebody may read them by a stale address.
//   4. Leaves that it had locked, when those who live have left: entries within the fences stay, all lines get a new
//      number.
//   5. Leaves that had its bit: reserved slots become removed entries, under the exclusive side. If another dead node
//   holds
//      that, its repair does this.
//
// After that the blocks are swept (LeafBlocks::Sweep) by the note of step 1. If a live node stays inside a leaf for
// longer than the patience, the leaf is left for another call: reserved slots, and its lock, stay.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/coro/worker.h"
#include "base/status.h"
#include "index/dolphin/leaf.h"
#include "index/shared_leaf/blocks/leaf_blocks.h"
#include "rdma/fabric.h"

namespace gannet::index::dolphin {

class LeafRepair {
 public:
  // All must outlive this. `channel`: of the owner, which polls it with `worker`. If the atomics of NICs are not
  // coherent with the CPU's, both lock words are changed by this channel: an FAA of 0 by a client would undo a store.
  LeafRepair(const rdma::Fabric* fabric, rdma::Channel* channel, coro::Worker* worker, shared_leaf::LeafBlocks* blocks,
             size_t key_lines, uint64_t patience_nanos)
      : fabric_(fabric),
        channel_(channel),
        worker_(worker),
        blocks_(blocks),
        key_lines_(key_lines),
        patience_nanos_(patience_nanos) {}

  // Calls its argument with every leaf that the index reaches. An error: it cannot be walked, and no block is given up.
  using ForEachLinked = std::function<Status(const std::function<void(rdma::GlobalAddress)>&)>;
  // Unavailable: leaves were left. Used by one thread at a time.
  Status RepairAfter(rdma::NodeId client, const ForEachLinked& for_each_linked);

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
  Status MakeWhole(rdma::GlobalAddress leaf) const;
  // False: it is in use.
  StatusOr<bool> MendReserved(rdma::GlobalAddress leaf) const;

  const rdma::Fabric* fabric_;
  rdma::Channel* channel_;
  coro::Worker* worker_;
  shared_leaf::LeafBlocks* blocks_;
  size_t key_lines_;
  uint64_t patience_nanos_;
};

}  // namespace gannet::index::dolphin
