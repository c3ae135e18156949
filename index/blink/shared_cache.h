// SharedNodes: the inner nodes of a B-link tree that the clients of a process have cached (inner_cache.h).
#pragma once

#include "index/blink/inner_cache.h"
#include "index/shared_leaf/shared_leaves.h"

namespace gannet::index::blink {

class SharedNodes final : public shared_leaf::SharedLeavesOf<InnerCache> {
 public:
  using SharedLeavesOf::SharedLeavesOf;
};

}  // namespace gannet::index::blink
