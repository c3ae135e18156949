// BlockPool: blocks of registered memory that keep their use as long as their index exists.
//
// A client may hold an address for any length of time. The slab allocator promises only that a block of the read-only
// part keeps its size (it does not promise even that for records, see slab.h). Indexes whose clients judge by the
// content what they READ at a stale address need more: a node of a tree stays a node (alive, dead, or reused) of that
// tree. So free blocks wait here, by size, and return to the slab only when the index is destroyed. Memory of records
// can serve other sizes because each record names its table and key.
//
// An XStore's leaf names neither: it has only its fences, the pairs of a few of its lines are used without them, and a
// translation table has no versions at all. Trees with leaves of one size cannot share a pool either. A stale hint of
// this node's threads (xstore/leaf_hint.h) is confirmed by the fences alone, and clients use single lines, so each line
// would have to name its tree; the five lines of an integer leaf have no bit to spare. So the memory that an index took
// at its largest stays with its table.
//
// Thread-safe. Shared by the index and by the blocks that still wait for their grace period.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/status.h"
#include "base/thread.h"
#include "index/index.h"

namespace gannet::index {

class BlockPool : public std::enable_shared_from_this<BlockPool> {
 public:
  // kWritable: clients write into the blocks. They must leave the first word of each line as it is, which slab.h needs.
  enum class Part : uint8_t { kReadOnly, kWritable };
  explicit BlockPool(Part part = Part::kReadOnly) : part_(part) {}

  // Returns a free block of the pool, or a new one from the slab. Its content is what its last user left.
  StatusOr<std::byte*> Allocate(Context& context, size_t bytes);
  // Gives back a block that no reader knows of.
  void Release(std::byte* block, size_t bytes);
  // Gives back a block after the grace period.
  void Retire(Context& context, std::byte* block, size_t bytes);

  // Gives the free blocks to the slab now, and later ones when they are released. The slab's allocator outlives them.
  void Close(rdma::SlabCache& slab);

  // Bytes of all blocks from the slab: in use, free, or waiting for a grace period.
  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  // A free block of this size, or null.
  std::byte* TakeFree(size_t bytes);

  const Part part_;
  mutable Mutex mutex_;
  std::atomic<size_t> free_blocks_{0};
  std::atomic<uint64_t> bytes_{0};
  std::map<size_t, std::vector<std::byte*>> free_;  // by block size
  rdma::SlabAllocator* closed_to_ = nullptr;        // Close was called
};

}  // namespace gannet::index
