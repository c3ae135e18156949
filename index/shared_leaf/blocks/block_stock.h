// BlockStock: the blocks of a pool that the clients of an index in this process have borrowed from its owner and not
// used yet, and the dead ones that the owner is to get back (block_lending.h). The clients share it (shared_leaves.h),
// so that none leaves anything behind when it ends.
//
// Blocks are lent over a connection. When that has ended, the owner takes them back, and also those that died
// (LeafBlocks::Sweep): so the stock forgets them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/thread.h"
#include "index/shared_leaf/blocks/leaf_blocks.h"

namespace gannet::index::shared_leaf {

// Pools of blocks of an index (BlockLender): of leaves, and of up to four sizes of inner nodes.
inline constexpr size_t kMostPools = 5;

// Thread-safe.
class BlockStock {
 public:
  // All: `connection` is the one over which the blocks were lent, or are to be used. What came over another one is
  // forgotten.

  // nullopt: there is none.
  std::optional<FreeBlock> Take(uint64_t connection);
  // Number of those that Take would return.
  size_t unused(uint64_t connection);
  // Adds blocks that were lent, or taken and not used.
  void Add(uint64_t connection, std::span<const FreeBlock> blocks);
  // Adds blocks that died. Returns the number of those that wait.
  size_t AddDead(uint64_t connection, std::span<const FreeBlock> blocks);

  // What goes back to the owner: dead blocks, and those that are more than `keep` unused ones; at most `most` of each.
  struct Surplus {
    std::vector<FreeBlock> dead;
    std::vector<FreeBlock> unused;
  };
  Surplus TakeSurplus(uint64_t connection, size_t keep, size_t most);

  // One client borrows for all. Exists while a call is on its way.
  class Borrowing {
   public:
    explicit Borrowing(BlockStock* stock);
    ~Borrowing();
    Borrowing(const Borrowing&) = delete;
    Borrowing& operator=(const Borrowing&) = delete;
    // True if there was no other connection before.
    bool is_first() const { return is_first_; }

   private:
    BlockStock* stock_;
    bool is_first_;
  };

 private:
  // The mutex is held.
  void Follow(uint64_t connection);

  Mutex mutex_;  // guards all of the following
  uint64_t connection_ = 0;
  std::vector<FreeBlock> free_;
  std::vector<FreeBlock> dead_;
  size_t borrowing_ = 0;
};

}  // namespace gannet::index::shared_leaf
