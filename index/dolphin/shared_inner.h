// SharedInner: what the clients of an index of Dolphin have in common in a process: copies of inner nodes, and borrowed
// blocks.
#pragma once

#include "index/dolphin/art_cache.h"
#include "index/shared_leaf/shared_leaves.h"

namespace gannet::index::dolphin {

class SharedInner final : public shared_leaf::SharedLeavesOf<ArtCacheOf> {
 public:
  using SharedLeavesOf::SharedLeavesOf;
};

}  // namespace gannet::index::dolphin
