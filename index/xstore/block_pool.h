// BlockPool: blocks of registered memory that keep their meaning for ever.
//
// A client may hold an address for as long as it likes. The slab allocator promises only that a block of the read-only
// part keeps its size (records do not even have that, see slab.h); XStore wants more: what was a leaf of a tree stays a
// leaf (alive, dead, or reused) of that tree, what was a translation table stays one, so that whatever a stale client
// READs can be judged by what it says. So blocks that come free wait here, by size, and go back to the slab only when
// the index is destroyed. That memory of records serves other sizes is possible because each record names its table and
// key. A leaf names neither: its fences are all it says, the pairs of a few of its lines are believed without them, and
// a translation table has no versions at all.
//
// Nor can trees with leaves of one size share a pool. A stale hint of this node's threads (leaf_hint.h) is confirmed by
// the fences alone, and clients believe single lines, so each line would have to name its tree; the five lines of an
// integer leaf have no bit to spare. What an index took at its largest therefore stays with its table.
//
// Thread-safe. Shared by the index and by the blocks that still wait for their grace period.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "base/status.h"
#include "base/thread.h"
#include "index/index.h"

namespace gannet::index::xstore {

class BlockPool : public std::enable_shared_from_this<BlockPool> {
 public:
  // A free block of the pool, or a new one from the slab. Contents: what the last user left.
  StatusOr<std::byte*> Allocate(Context& context, size_t bytes);
  // Gives back a block that no reader knows of.
  void Release(std::byte* block, size_t bytes);
  // Gives back a block after the grace period.
  void Retire(Context& context, std::byte* block, size_t bytes);

  // Free blocks go to the slab now; those released later are lost to it.
  void Close(rdma::SlabCache& slab);

  // All that it has from the slab: in use, free, or waiting for a grace period.
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  // A free block of this size, or null.
  std::byte* TakeFree(size_t bytes);

  mutable Mutex mutex_;
  std::atomic<size_t> free_blocks_{0};
  std::atomic<uint64_t> bytes_{0};
  std::map<size_t, std::vector<std::byte*>> free_;  // by block size
  bool closed_ = false;
};

}  // namespace gannet::index::xstore
