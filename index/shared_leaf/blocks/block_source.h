// BlockSource: where the new nodes of an index come from, and the dead ones go. Not thread-safe.
#pragma once

#include <cstdint>

#include "base/coro/task.h"
#include "base/status.h"
#include "index/shared_leaf/blocks/leaf_blocks.h"

namespace gannet::index::shared_leaf {

class BlockSource {
 public:
  virtual ~BlockSource() = default;
  // `connection`: over which the block is to be made a leaf; 0: the present one. Unavailable: it has ended.
  // ResourceExhausted: the owner's heap is full.
  virtual coro::Task<StatusOr<FreeBlock>> Take(uint64_t connection) = 0;
  // A block that was taken and not used, with the connection that it had.
  virtual void PutBack(const FreeBlock& block) = 0;
  // A block that died, with the word that it has now. If the owner cannot be reached, it gets the block later.
  virtual coro::Task<void> Return(FreeBlock block) = 0;
  // Sees to it that the next takers need not wait, if few blocks are left. For a caller that holds no lock.
  virtual coro::Task<void> Refill() { co_return; }
};

}  // namespace gannet::index::shared_leaf
