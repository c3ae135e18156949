// BlockSource: where the new nodes of an index come from, and the dead ones go. Not thread-safe.
#pragma once

#include "base/coro/task.h"
#include "base/status.h"
#include "index/remote/leaf_blocks.h"

namespace gannet::index::remote {

class BlockSource {
 public:
  virtual ~BlockSource() = default;
  // ResourceExhausted: the owner's heap is full.
  virtual coro::Task<StatusOr<FreeBlock>> Take() = 0;
  // A block that was taken and not used.
  virtual void PutBack(const FreeBlock& block) = 0;
  // A block that died, with the word that it has now. If the owner cannot be reached, it gets the block later.
  virtual coro::Task<void> Return(FreeBlock block) = 0;
};

}  // namespace gannet::index::remote
