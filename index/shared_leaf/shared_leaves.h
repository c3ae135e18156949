// SharedLeaves: what all clients of an index whose leaves they change have in common in this process, in any of its
// threads. The kind's cache is derived from it.
#pragma once

#include "index/index.h"
#include "index/shared_leaf/blocks/block_stock.h"

namespace gannet::index::shared_leaf {

// Thread-safe.
class SharedLeaves : public SharedCache {
 public:
  BlockStock& blocks() { return blocks_; }

 private:
  BlockStock blocks_;
};

}  // namespace gannet::index::shared_leaf
